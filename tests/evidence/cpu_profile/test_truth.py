"""What is said of profiles of programs with known faults, alone and beside their traces."""

from __future__ import annotations

from functools import cache

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import Result

PROFILES = CORPUS / "evidence" / "cpu_profile"
SAID = {
    "tokenizer.speedscope.json.gz": (
        "Of the main thread's samples outside the import chain, 84% are in tokenize → bpe_merge (cpuprof.py:17)",
        "92%",
    ),
    "tokenizer.chrome.json.gz": (
        "Of the main thread's time outside the import chain, 88% is in tokenize → bpe_merge (cpuprof.py:17)",
        "94%",
    ),
    "tokenizer.collapsed.txt.gz": (
        "Of the main thread's samples outside the import chain, 83% are in tokenize → bpe_merge (cpuprof.py:17)",
        "85%",
    ),
    # VizTracer records where functions begin, and its ring holds no start-up.
    "tokenizer.viztracer.json.gz": ("Of the main thread's time, 66% is in tokenize → bpe_merge (cpuprof.py:14)", None),
    "numpy_main.speedscope.json.gz": (
        "Of the main thread's samples outside the import chain, 85% are in step → normalise (cpuprof.py:24)",
        "90%",
    ),
}
CHAIN = "of all {are} start-up: imports of torch._inductor, which prepare_trace begins, once and not in every step"
# Profile -> the trace that was recorded of the same process, and words of how the two meet.
BESIDE = {
    "tokenizer.speedscope.json.gz": ("tokenizer.with_pyspy_speedscope", "the profile ends before the trace begins"),
    "tokenizer.chrome.json.gz": ("tokenizer.with_pyspy_chrometrace", "the profile ends before the trace begins"),
    "tokenizer.collapsed.txt.gz": (
        "tokenizer.with_pyspy_raw",
        "whether that was while the trace was recorded cannot be told",
    ),
    "numpy_main.speedscope.json.gz": ("numpy_main.with_pyspy_speedscope", "the profile ends before the trace begins"),
}
NEVER = ("bytecode", "ernels are", "_call_with_frames_removed (")


@cache
def alone(name: str) -> Result:
    return ta.analyze(ta.load(PROFILES / name))


@cache
def beside(name: str) -> Result:
    return ta.analyze(ta.load([PROFILES / f"{BESIDE[name][0]}.pt.trace.json.gz", PROFILES / name]))


def said(name: str) -> str:
    words, startup = SAID[name]
    are = "is" if "time" in words else "are"
    return words + (f"; {startup} {CHAIN.format(are=are)}" if startup else "")


def test_every_program_of_the_corpus_is_asked_for():
    if PROFILES.is_dir():
        truth = yaml.safe_load((PROFILES / "TRUTH.yaml").read_text())
        listed = {name for entry in truth.values() for name in entry["files"] if ".pt.trace." not in name}
        assert listed == set(SAID)


@needs_corpus
@pytest.mark.parametrize("name", SAID)
def test_a_profile_alone(name):
    result = alone(name)
    assert result.verdict.headline == f"{said(name)}."
    assert result.findings == [] and result.inputs == []
    text = render_text(result)
    assert [words for words in NEVER if words in text] == []


@needs_corpus
@pytest.mark.parametrize("name", BESIDE)
def test_a_profile_beside_its_trace(name):
    meets = BESIDE[name][1]
    result = beside(name)
    (own,) = result.evidence
    headline = result.verdict.headline
    assert headline.startswith("GPU 0 is idle 9") and result.verdict.bound_by == "host"
    if name.endswith(".txt.gz"):
        # Folded stacks name no process: whose they are is told by the number of the main thread.
        assert own.placed_by
    assert own.placed_by and own.shift_ns is None
    assert said(name) in headline
    assert meets in headline
    # Nothing of the trace's idle time is put down to a profile that does not overlap it.
    assert all("bpe_merge" not in finding.message and "normalise" not in finding.message for finding in result.findings)


@needs_corpus
def test_a_trace_with_stacks_says_it_itself():
    result = ta.analyze(ta.load(PROFILES / "tokenizer.with_none.pt.trace.json.gz"))
    assert "bpe_merge (cpuprof.py:14)" in result.verdict.headline


def test_the_fixtures_of_the_repository():
    folder = FIXTURES / "evidence" / "cpu_profile"
    result = ta.analyze(
        ta.load([folder / "tokenizer.speedscope.json.gz", folder / "tokenizer.with_pyspy_speedscope.pt.trace.json.gz"])
    )
    assert said("tokenizer.speedscope.json.gz") in result.verdict.headline
    for name in ("tokenizer.chrome.json.gz", "tokenizer.collapsed.txt.gz", "numpy_main.speedscope.json.gz"):
        assert ta.analyze(ta.load(folder / name)).verdict.headline == f"{said(name)}."
