"""What is said of kernels whose limit is known, alone and beside their traces, of each page."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.result.document import Result

COUNTERS = CORPUS / "evidence" / "kernel_counters"
PAGES = ("details.csv", "raw.csv.gz", "details.txt")
# Program -> the rule that speaks (None: nothing is at fault), parts of what is said first, and what must not be said.
FIRST: dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]] = {
    "elementwise.slow": (
        "KRN007",
        ("DRAM-bound at 91% of peak (3.05 TB/s): fuse it", "move fewer bytes"),
        ("occupancy", "grid"),
    ),
    "gemm.slow": (
        None,
        ("tensor-core-bound at 93% of peak", "near the roof"),
        ("occupancy", "two blocks", "bank conflict"),
    ),
    "gemv.slow": (
        "KRN008",
        ("the grid is too small: 24 blocks on 132 SMs, achieved occupancy 3%; latency-bound",),
        ("DRAM", "bandwidth"),
    ),
    "gemv.fixed": ("KRN007", ("mostly DRAM-bound at 76% of peak",), ("too small",)),
    "atomics.slow": (
        "KRN008",
        (
            "latency-bound on",
            "serialised atomics",
            "SM, L2 and DRAM all stay below 2% of peak while warps wait",
            "L1TEX",
        ),
        ("bandwidth", "occupancy"),
    ),
    "fma.slow": (None, ("compute-bound: FP32 FMA pipe 87%, issue slots 97%",), ("memory", "occupancy")),
    "tail_wave.slow": (
        "KRN008",
        ("a second wave of 4 blocks doubles the time (1.03 waves",),
        ("DRAM", "bank conflict"),
    ),
    "tail_wave.fixed": (
        "KRN009",
        ("occupancy is limited to 12.5% by shared memory",),
        ("a tail", "second wave", "last wave"),
    ),
}
# What only the details say: Nsight Compute's own rules.
RULED = {"atomics.slow": "(CPIStall 89%)", "tail_wave.slow": "LaunchConfiguration estimates 50%"}
OURS = {"KRN007", "KRN008", "KRN009"}
SLOW, FIXED = ("gemv.slow", "tail_wave.slow"), {"gemv.slow": "gemv.fixed", "tail_wave.slow": "tail_wave.fixed"}


@cache
def analysis(*files: str) -> Result:
    return ta.analyze(ta.load([COUNTERS / file for file in files]))


def said(result: Result) -> str:
    """What is told of the kernels: the finding, or else the headline's part."""
    found = [finding.message for finding in result.findings if finding.rule in OURS]
    return found[0] if found else "Kernel" + result.verdict.headline.partition("Kernel")[2]


def fired(result: Result) -> set[str]:
    return {finding.rule for finding in result.findings} & OURS


@needs_corpus
def test_every_program_has_its_truth() -> None:
    assert yaml.safe_load((COUNTERS / "TRUTH.yaml").read_text()).keys() == FIRST.keys()


@needs_corpus
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("page", [*PAGES, "all"])
@pytest.mark.parametrize("name", FIRST)
def test_truth(name: str, page: str, beside: bool) -> None:
    pages = [f"{name}.{one}" for one in (PAGES if page == "all" else (page,))]
    result = analysis(*([f"{name}.pt.trace.json.gz"] if beside else []), *pages)
    rule, parts, never = FIRST[name]
    if rule is not None:
        assert rule in fired(result) or (beside and rule == "KRN007")
    assert fired(result) <= {rule}
    words = said(result)
    for part in parts:
        assert part in words
    for part in never:
        # The sentence names DRAM among what is idle.
        assert part.lower() not in words.replace("SM, L2 and DRAM all", "all").lower()
    if page != "raw.csv.gz" and name in RULED:
        assert RULED[name] in words
    # It is the first sentence, or follows the trace's.
    assert words.split(". ")[0].rstrip(".")[:60] in result.verdict.headline


@needs_corpus
@pytest.mark.parametrize("name", SLOW)
def test_what_is_promised_is_what_the_fix_gave(name: str) -> None:
    """The time of the fixed program lies within the range."""
    truth = yaml.safe_load((COUNTERS / "TRUTH.yaml").read_text())[name]
    result = analysis(f"{name}.pt.trace.json.gz", f"{name}.details.csv")
    (found,) = [finding for finding in result.findings if finding.rule == "KRN008"]
    saving = found.saving
    assert saving.predicted_speedup_range is not None
    least, most = saving.predicted_speedup_range
    assert least <= truth["slow"] / truth["fixed"] <= most * 1.01


@needs_corpus
def test_pages_of_one_run_are_one() -> None:
    name = "gemv.slow"
    together = analysis(*(f"{name}.{page}" for page in PAGES))
    assert len(together.findings) == 1
    assert len(together.evidence) == 3


@needs_corpus
def test_a_profile_is_beside_no_trace_of_other_kernels() -> None:
    result = analysis("fma.slow.pt.trace.json.gz", "gemv.slow.details.csv")
    assert result.evidence[0].placed_by is None
    assert "of another run" in (result.evidence[0].note or "")


@needs_corpus
def test_nothing_tells_of_the_host(tmp_path: Path) -> None:
    result = analysis("gemv.slow.details.csv")
    assert "127.0.0.1" not in json.dumps([finding.message for finding in result.findings])
