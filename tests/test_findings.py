"""What the rules must say of real traces with planted faults, and must not say of healthy ones."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.result.document import SEVERITIES, Result

# file -> what its findings must be: `first` one of, `never` none of, `quiet` nothing of medium severity or more.
EXPECTED: dict[str, dict[str, Any]] = {
    "kineto/dataloader.slow.pt.trace.json.gz": {
        "first": ["INP001"],
        "never": ["CPY001", "COM001"],
        "bound_by": "input",
    },
    "kineto/launch_storm.slow.pt.trace.json.gz": {"first": ["LCH001"], "bound_by": "launch"},
    "kineto/launch_storm.fixed.pt.trace.json.gz": {"never": ["LCH001", "GAP001"], "quiet": True},
    "kineto/decode_small_batch.fixed.pt.trace.json.gz": {"never": ["LCH001", "GAP001"], "quiet": True},
    "kineto/h2d_pageable.slow.pt.trace.json.gz": {
        "first": ["CPY001", "CPY002"],
        "some": ["CPY002"],
        "bound_by": "memcpy",
    },
    "kineto/h2d_pageable.fixed.pt.trace.json.gz": {"never": ["CPY001", "CPY002"], "quiet": True},
    "kineto/h2d_pinned_serial.slow.pt.trace.json.gz": {"first": ["CPY001"], "never": ["CPY002"]},
    "kineto/h2d_pinned_serial.fixed.pt.trace.json.gz": {"never": ["CPY001", "CPY002"], "quiet": True},
    "kineto/cpu_postprocess.slow.pt.trace.json.gz": {"first": ["HST001"], "bound_by": "host"},
    "kineto/item_sync.slow.pt.trace.json.gz": {"some": ["SYN001"]},
    "kineto/item_sync.fixed.pt.trace.json.gz": {"never": ["SYN001"]},
    "kineto/empty_cache.slow.pt.trace.json.gz": {"some": ["MEM001"]},
    "kineto/clean_infer.slow.pt.trace.json.gz": {"quiet": True, "bound_by": "compute"},
    "kineto/streams_overlap.slow.pt.trace.json.gz": {"quiet": True, "bound_by": "compute"},
    "nsys/launch_storm.slow.sqlite": {"first": ["LCH001"], "bound_by": "launch"},
    "nsys/launch_storm.fixed.graph-node.sqlite": {"never": ["LCH001", "GAP001"], "quiet": True},
    "nsys/launch_storm.fixed.graph-level.sqlite": {"never": ["LCH001", "GAP001"], "some": ["TRC008"], "quiet": True},
    "nsys/h2d_pageable.slow.sqlite": {"first": ["CPY001", "CPY002"], "some": ["CPY002"], "bound_by": "memcpy"},
    "nsys/nvtx_dataloader.slow.sqlite": {"first": ["INP001"], "names": "data_loading", "bound_by": "input"},
    "multirank/pipeline_bubble.slow": {"some": ["COM001"], "bound_by": "communication"},
    "captured/lstm.json.gz": {"first": ["LCH001"], "bound_by": "launch"},
    "captured/feed_named.json.gz": {"first": ["INP001"], "names": "get_batch", "bound_by": "input"},
    "captured/feed_unnamed.json.gz": {"first": ["HST001"], "names": "nothing was recorded", "bound_by": "host"},
    "captured/host_python.json.gz": {"first": ["HST001"], "bound_by": "host"},
    "captured/pageable.json.gz": {"first": ["CPY002"], "bound_by": "memcpy"},
    "captured/checkpoint.json.gz": {"first": ["CPY004"], "bound_by": "memcpy"},
    "captured/graph_pinned.json.gz": {"first": ["CPY001"], "never": ["CPY002", "LCH001", "GAP001"], "quiet": True},
    "captured/healthy_item.json.gz": {"never": ["SYN001"], "quiet": True, "bound_by": "compute"},
    "captured/pingpong.json.gz": {"quiet": True, "bound_by": "compute"},
    "captured/churn.json.gz": {"first": ["MEM001"], "bound_by": "memory_management"},
    "captured/isnan_sync.json.gz": {"some": ["SYN001"]},
}
# The same for files that are only in the corpus.
EXPECTED_CORPUS: dict[str, dict[str, Any]] = {
    "kineto/clean_train.slow.pt.trace.json.gz": {"quiet": True, "bound_by": "compute"},
    "kineto/decode_small_batch.slow.pt.trace.json.gz": {"first": ["LCH001"]},
    "kineto/slow_workers.slow.pt.trace.json.gz": {"first": ["INP001"]},
    "kineto/compiled_train.slow.pt.trace.json.gz": {"first": ["LCH001", "HST001"]},
    "kineto/sync_timing.slow.pt.trace.json.gz": {"first": ["LCH001", "HST001"]},
    "kineto/mask_sync.slow.pt.trace.json.gz": {"some": ["SYN001"]},
    "kineto/readback_logits.slow.pt.trace.json.gz": {"first": ["CPY004"]},
    "kineto/dict_h2d.slow.pt.trace.json.gz": {"some": ["CPY003"]},
    "kineto/attention_masked.slow.pt.trace.json.gz": {"never": ["CPY002", "CPY004"]},
    "nsys/uvm.slow.sqlite": {"some": ["CPY005"], "never": ["CPY002"]},
    "kineto/recompile.slow.pt.trace.json.gz": {"first": ["HST003"], "bound_by": "host"},
    "nsys/dataloader.slow.gpu-metrics.sqlite": {"first": ["HST001", "INP001", "GAP001"]},
    "nsys/comm_not_overlapped.slow.4gpu.sqlite": {"some": ["COM001"]},
    "multirank/clean_ddp.slow": {"never": ["COM001"], "quiet": True},
    "multirank/slow_link.slow": {"first": ["COM001", "COM004"]},
}
# Recovering at most a twentieth of the window counts as gone.
FIXED_CORPUS = {
    "dataloader": ["INP001"],
    "mask_sync": ["SYN001"],
    "sync_timing": ["SYN001"],
    "empty_cache": ["MEM001"],
    "cpu_postprocess": ["HST001", "CPY004"],
    "readback_logits": ["CPY004", "CPY002"],
    "dict_h2d": ["CPY003"],
}


@cache
def result_of(path: Path) -> Result:
    return ta.analyze(ta.load(path))


def check(path: Path, expected: dict[str, Any]) -> None:
    result = result_of(path)
    rules = [finding.rule for finding in result.findings]
    assert not [rule for rule in result.rules if rule.outcome == "error"]
    if "first" in expected:
        assert rules[0] in expected["first"]
    if "some" in expected:
        assert set(rules) & set(expected["some"])
    assert not set(rules) & set(expected.get("never", []))
    if expected.get("quiet"):
        assert [f.rule for f in result.findings if SEVERITIES.index(f.severity) >= SEVERITIES.index("medium")] == []
    if "names" in expected:
        assert expected["names"] in result.findings[0].message
    if "bound_by" in expected:
        assert result.verdict.bound_by == expected["bound_by"]


@pytest.mark.parametrize("file", EXPECTED)
def test_fixture(file):
    check(FIXTURES / file, EXPECTED[file])


@needs_corpus
@pytest.mark.parametrize("file", EXPECTED_CORPUS)
def test_corpus(file):
    check(CORPUS / file, EXPECTED_CORPUS[file])


@needs_corpus
@pytest.mark.parametrize("name", FIXED_CORPUS)
def test_what_was_fixed_is_gone(name):
    result = result_of(CORPUS / f"kineto/{name}.fixed.pt.trace.json.gz")
    shares = {f.rule: f.saving.recoverable_share or 0 for f in result.findings}
    assert all(shares.get(rule, 0) <= 0.05 for rule in FIXED_CORPUS[name])


def inputs(root: Path) -> list[str]:
    """Every trace of our own under `root`; the ranks of one job count as one."""
    found = [
        p
        for kind in ("kineto", "nsys", "captured")
        for p in sorted((root / kind).glob("*.*"))
        if p.suffix in (".gz", ".sqlite")
    ]
    return [str(p.relative_to(root)) for p in [*found, *sorted((root / "multirank").glob("*"))]]


def check_savings(path: Path) -> None:
    """No GPU gets back more than its window, and every finding's share is of its window."""
    result = result_of(path)
    windows = {(d.rank, d.device): d.window_ns for d in result.devices}
    recovered, of_the_job = dict.fromkeys(windows, 0), 0
    for finding in result.findings:
        if (finding.scope.rank, finding.scope.device) in recovered:
            recovered[finding.scope.rank, finding.scope.device] += finding.saving.recoverable_ns or 0
        else:
            of_the_job += finding.saving.recoverable_ns or 0
    assert all(recovered[key] <= windows[key] for key in windows)
    assert of_the_job + sum(recovered.values()) <= sum(windows.values())


@pytest.mark.parametrize("file", inputs(FIXTURES))
def test_savings_never_exceed_the_window(file):
    check_savings(FIXTURES / file)


@needs_corpus
@pytest.mark.parametrize("file", inputs(CORPUS))
def test_savings_never_exceed_the_window_in_the_corpus(file):
    check_savings(CORPUS / file)


GOLDEN = Path(__file__).parent / "golden"
GOLDEN_FILES = ("kineto/dataloader.slow.pt.trace.json.gz", "nsys/launch_storm.fixed.graph-level.sqlite")


@pytest.mark.parametrize("file", GOLDEN_FILES)
def test_golden_result(file):
    """The whole document, as a diff shows it. After an intended change run: python -m tests.test_findings"""
    golden = json.loads((GOLDEN / golden_name(file)).read_text())
    assert relative(result_of(FIXTURES / file)) == golden


def golden_name(file: str) -> str:
    return file.replace("/", "-").split(".pt")[0].removesuffix(".sqlite") + ".json"


def relative(result: Result) -> dict[str, Any]:
    """The document without what depends on the checkout or the release."""
    document = result.to_dict()
    document["tool"].pop("version")
    for item in document["inputs"]:
        item["path"] = Path(item["path"]).name
    return document


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in GOLDEN_FILES:
        text = json.dumps(relative(result_of(FIXTURES / name)), indent=2, ensure_ascii=False)
        (GOLDEN / golden_name(name)).write_text(text + "\n")
