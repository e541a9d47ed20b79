"""What is said of snapshots of programs with planted faults, and of healthy ones, alone and beside their traces."""

from __future__ import annotations

import json
from functools import cache

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.result.document import Result

MEMORY = CORPUS / "evidence" / "memory"
# Snapshot -> the rule that speaks first, parts of what it says, and rules that must be silent.
FIRST = {
    "leak_activations.slow": (
        "MEM005",
        ("rises by exactly 16 MiB a step", "memory.py:33", "10 blocks"),
        ("MEM004", "MEM008", "MEM009"),
    ),
    "leak_activations.fixed": ("MEM006", ("Memory is flat on GPU 0",), ("MEM004", "MEM005", "MEM008", "MEM009")),
    "logits_upcast.slow": (
        "MEM008",
        (
            "set at the loss by 4 blocks of 1.54 GiB",
            "memory.py:63",
            "memory.py:64",
            "2 with no Python frame (backward)",
            "Each is twice as large as the 786 MiB of memory.py:62",
        ),
        ("MEM004", "MEM005", "MEM009"),
    ),
    "logits_upcast.fixed": (
        "MEM006",
        ("of the 2.58 GiB at the peak", "memory.py:65", "backward; blocks as large as those of memory.py:65"),
        ("MEM004", "MEM005", "MEM009"),
    ),
    "frag_growing.slow": (
        "MEM004",
        ("takes 436 MiB more from the driver", "memory.py:78", "4.13 GiB", "836 MiB were", "whole unused segments"),
        ("MEM005", "MEM008"),
    ),
    "frag_growing.fixed": (
        "MEM006",
        ("Reserved memory follows the peak (882 MiB)",),
        ("MEM004", "MEM005", "MEM008", "MEM009"),
    ),
    "optimizer_states.slow": (
        "MEM006",
        (
            "of the 645 MiB in use between steps 384 MiB are optimizer state (memory.py:89 (step)) and 192 MiB parameters "
            "(memory.py:22",
        ),
        ("MEM004", "MEM005", "MEM008", "MEM009"),
    ),
    "healthy.slow": (
        "MEM006",
        ("Memory is flat on GPU 0", "the 635 MiB at the peak", "activations from memory.py:119"),
        ("MEM004", "MEM005", "MEM008", "MEM009"),
    ),
}
# The first sentence is the headline: short enough to be read aloud, with the figure and the line.
HEADLINES = {
    "leak_activations.slow": (
        "The level of memory in use on GPU 0 rises by exactly 16 MiB a step: 96 MiB in the last 6 steps, allocated at "
        "memory.py:33 (step)."
    ),
    "leak_activations.fixed": (
        "Memory is flat on GPU 0: 65 MiB are in use between steps, and of the 113 MiB at the peak 48 MiB (42%) are "
        "activations from memory.py:32 (step)."
    ),
    "logits_upcast.slow": (
        "The peak of 7.18 GiB on GPU 0 is set at the loss by 4 blocks of 1.54 GiB, at memory.py:63 (step), "
        "memory.py:64 (step) and 2 with no Python frame (backward)."
    ),
    "logits_upcast.fixed": (
        "Memory is flat on GPU 0: 185 MiB are in use between steps, and of the 2.58 GiB at the peak 1.57 GiB (61%) "
        "have no Python frame (backward; blocks as large as those of memory.py:65 (step))."
    ),
    "frag_growing.slow": (
        "Each of the last 6 steps takes 436 MiB more from the driver, most of it for memory.py:78 (step), though as "
        "much is in use after each."
    ),
    "frag_growing.fixed": (
        "Memory is flat on GPU 0: 161 MiB are in use between steps, and of the 829 MiB at the peak 471 MiB (57%) are "
        "activations from memory.py:78 (step)."
    ),
    "optimizer_states.slow": (
        "Memory is flat on GPU 0: of the 645 MiB in use between steps 384 MiB are optimizer state (memory.py:89 "
        "(step)) and 192 MiB parameters (memory.py:22 (mlp))."
    ),
    "healthy.slow": (
        "Memory is flat on GPU 0: 251 MiB are in use between steps, and of the 635 MiB at the peak 288 MiB (45%) are "
        "activations from memory.py:119 (step)."
    ),
}
NEVER = {
    "leak_activations.slow": ("ragment", "optimizer"),
    "leak_activations.fixed": ("leak", "rises"),
    "logits_upcast.slow": ("leak", "rises", "parameters"),
    "logits_upcast.fixed": ("16 to 32 bits", "rises"),
    "frag_growing.slow": ("rises",),
    "frag_growing.fixed": ("ragment", "rises", "take more"),
    "optimizer_states.slow": ("rises", "activations"),
    "healthy.slow": ("rises", "ragment"),
}


@cache
def alone(name: str) -> Result:
    return ta.analyze(ta.load(MEMORY / f"{name}.snapshot.pickle.xz"))


@cache
def beside(name: str) -> Result:
    return ta.analyze(ta.load([MEMORY / f"{name}.{suffix}" for suffix in ("pt.trace.json.gz", "snapshot.pickle.xz")]))


def test_every_planted_fault_is_asked_for():
    if MEMORY.is_dir():
        assert set(yaml.safe_load((MEMORY / "TRUTH.yaml").read_text())) == set(FIRST)


@needs_corpus
@pytest.mark.parametrize("name", FIRST)
def test_the_first_sentence_of_a_snapshot_alone(name):
    rule, said, silent = FIRST[name]
    result = alone(name)
    assert [one for one in result.rules if one.outcome == "error"] == []
    assert result.findings[0].rule == rule
    assert [part for part in said if part not in result.findings[0].message] == []
    assert result.verdict.headline == HEADLINES[name]
    assert result.findings[0].message.startswith(HEADLINES[name])
    assert not {finding.rule for finding in result.findings} & set(silent)
    told = json.dumps([(finding.title, finding.message) for finding in result.findings])
    assert [part for part in NEVER[name] if part in told] == []


@needs_corpus
@pytest.mark.parametrize("name", FIRST)
def test_a_snapshot_beside_its_trace_says_the_same(name):
    own = [one for one in alone(name).findings if one.rule.startswith("MEM00")]
    both = {one.rule: one for one in beside(name).findings if one.rule.startswith("MEM00")}
    assert {one.rule: one.message for one in own} == {
        rule: one.message for rule, one in both.items() if rule != "MEM001"
    }
    assert [one for one in beside(name).rules if one.outcome == "error"] == []


@needs_corpus
@pytest.mark.parametrize("name", FIRST)
def test_the_verdict_beside_a_trace_says_it_too(name):
    headline = beside(name).verdict.headline
    assert HEADLINES[name].removesuffix(".").lower() in headline.lower()
    assert headline.startswith("GPU 0 ")


@needs_corpus
def test_cpp_stacks_and_no_marks():
    result = ta.analyze(ta.load(CORPUS / "extras" / "memory_snapshot.pickle"))
    assert result.findings[0].rule == "MEM005"
    assert "rises by exactly 16 MiB a step" in result.verdict.headline
    assert "extras.py:13" in result.verdict.headline
