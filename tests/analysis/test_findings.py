"""What the rules must say of real traces with planted faults, and must not say of healthy ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import CORPUS, FIXTURES, needs_corpus
from tests.support.results import result_of
from traceanalyzer.analysis.examine import about_the_job
from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.errors import InputError
from traceanalyzer.result.document import Result

# file -> what its findings must be: `first` one of, `some` one of anywhere, `every` all of, `never` none of, `little` none of them to
# recover more than LITTLE, `only` those of medium severity or more, `headline` a part of the first sentence.
EXPECTED: dict[str, dict[str, Any]] = {
    "kineto/dataloader.slow.pt.trace.json.gz": {
        "first": ["INP001"],
        "never": ["CPY001", "COM001"],
        "bound_by": "input",
    },
    "kineto/launch_storm.slow.pt.trace.json.gz": {"first": ["LCH001"], "bound_by": "launch"},
    "kineto/launch_storm.fixed.pt.trace.json.gz": {"never": ["LCH001", "GAP001"], "only": ["KRN005"]},
    "kineto/decode_small_batch.fixed.pt.trace.json.gz": {"never": ["LCH001", "GAP001"], "only": []},
    "kineto/h2d_pageable.slow.pt.trace.json.gz": {
        "first": ["CPY001", "CPY002"],
        "some": ["CPY002"],
        "bound_by": "memcpy",
    },
    "kineto/h2d_pageable.fixed.pt.trace.json.gz": {"never": ["CPY001", "CPY002"], "only": []},
    "kineto/h2d_pinned_serial.slow.pt.trace.json.gz": {"first": ["CPY001"], "never": ["CPY002"]},
    "kineto/h2d_pinned_serial.fixed.pt.trace.json.gz": {"never": ["CPY001", "CPY002"], "only": []},
    "kineto/cpu_postprocess.slow.pt.trace.json.gz": {"first": ["HST001"], "bound_by": "host"},
    "kineto/item_sync.slow.pt.trace.json.gz": {"some": ["SYN001"]},
    "kineto/item_sync.fixed.pt.trace.json.gz": {"never": ["SYN001"]},
    "kineto/empty_cache.slow.pt.trace.json.gz": {"some": ["MEM001"]},
    "kineto/clean_infer.slow.pt.trace.json.gz": {"only": [], "bound_by": "compute"},
    "kineto/streams_overlap.slow.pt.trace.json.gz": {"only": [], "bound_by": "compute"},
    "nsys/launch_storm.slow.sqlite": {"first": ["LCH001"], "bound_by": "launch"},
    # Its first graph takes 2.4 of 15 ms to launch: idle time within the first marked step.
    "nsys/launch_storm.fixed.graph-node.sqlite": {"never": ["LCH001"], "some": ["KRN005"], "only": ["GAP001"]},
    "nsys/launch_storm.fixed.graph-level.sqlite": {"never": ["LCH001", "GAP001"], "some": ["TRC008"], "only": []},
    "nsys/h2d_pageable.slow.sqlite": {"first": ["CPY001", "CPY002"], "some": ["CPY002"], "bound_by": "memcpy"},
    "nsys/nvtx_dataloader.slow.sqlite": {"first": ["INP001"], "names": "data_loading", "bound_by": "input"},
    "multirank/pipeline_bubble.slow": {"first": ["COM002"], "bound_by": "communication"},
    "kineto/attention_masked.slow.pt.trace.json.gz": {"first": ["KRN002"], "never": ["CPY002", "CPY004"]},
    "kineto/attention_masked.fixed.pt.trace.json.xz": {"little": ["KRN002"]},
    "kineto/cpu_postprocess.fixed.pt.trace.json.xz": {"little": ["HST001", "CPY004"], "only": []},
    "kineto/dict_h2d.slow.pt.trace.json.xz": {"every": ["CPY003"]},
    "kineto/dict_h2d.fixed.pt.trace.json.xz": {"little": ["CPY003", "SYN001"], "only": ["KRN001"]},
    "kineto/elementwise_chain.slow.pt.trace.json.xz": {"first": ["KRN005"], "bound_by": "compute"},
    # Three kernels in all. Before the first of them the marked step takes 0.3 of 1.4 ms to call compiled code.
    "kineto/elementwise_chain.fixed.pt.trace.json.xz": {
        "little": ["KRN005"],
        "only": ["HST001"],
        "bound_by": "compute",
    },
    "kineto/gc_stack.slow.pt.trace.json.gz": {"first": ["HST002"], "names": "collect", "bound_by": "host"},
    "kineto/leak_growth.slow.pt.trace.json.xz": {"every": ["MEM005"]},
    "kineto/leak_growth.fixed.pt.trace.json.xz": {"never": ["MEM005"]},
    "kineto/mask_sync.slow.pt.trace.json.xz": {"every": ["SYN001"]},
    "kineto/mask_sync.fixed.pt.trace.json.xz": {"little": ["SYN001"]},
    "kineto/readback_logits.slow.pt.trace.json.xz": {"first": ["CPY004"], "bound_by": "memcpy"},
    "kineto/readback_logits.fixed.pt.trace.json.xz": {"little": ["CPY001", "CPY002", "CPY004"], "only": []},
    "kineto/recompile.slow.pt.trace.json.xz": {"first": ["HST003"], "bound_by": "host"},
    "kineto/recompile.fixed.pt.trace.json.xz": {"little": ["HST003"], "only": ["KRN001"]},
    "kineto/sgd_forloop.slow.pt.trace.json.xz": {"every": ["LCH002"], "bound_by": "launch"},
    "kineto/small_grid.slow.pt.trace.json.gz": {"first": ["KRN004"], "bound_by": "compute"},
    "kineto/small_grid.fixed.pt.trace.json.xz": {"little": ["KRN004"], "only": []},
    "nsys/uvm.slow.sqlite.xz": {"first": ["CPY005"], "never": ["CPY002"]},
    "multirank/gpu_straggler.slow": {"first": ["COM005"], "names": "rank 2", "never": ["COM004"]},
    # Jobs: late by its data loader, by longer sequences, by chance, and as the longest stage of a pipeline.
    # The loader of one GPU is the cause; the four together lose most of their time to waiting for it.
    "jobs/ddp_loader_late.slow": {
        "first": ["INP001"],
        "only": ["INP001", "COM002"],
        "bound_by": "communication",
        "headline": "30.5 ms more a step than the median rank because its next batch is not ready",
    },
    "jobs/ddp_seqlen.slow": {"first": ["COM005"], "names": "for rank 1, which computes", "only": ["COM005"]},
    "jobs/ddp_random_jitter.slow": {"first": ["COM002"], "names": "now one and now another", "never": ["COM005"]},
    "jobs/pipeline_1f1b_unequal.slow": {
        "first": ["COM002"],
        "names": "for rank 2, which computes",
        "only": ["COM002"],
    },
    "multirank/pipeline_bubble.fixed": {"every": ["COM006"]},
    "multirank/slow_link.slow": {"first": ["COM004"], "bound_by": "communication"},
    # Programs in C++ without PyTorch: of some only samples and sampled metrics tell what is wrong.
    "native/mesh.sqlite.xz": {
        "first": ["HST001"],
        "names": "inside getc called from load_mesh",
        "headline": "load_mesh leaves GPU 0 idle 90 ms of each 94.5 ms step",
        "bound_by": "host",
    },
    "native/default_stream.sqlite.xz": {"every": ["STM001"], "bound_by": "compute"},
    "native/streams.sqlite.xz": {"never": ["STM001"], "only": [], "headline": "paid once: 967 us of 11.3 ms"},
    "native/empty_metrics.sqlite.xz": {"first": ["KRN004"], "every": ["MET001"], "bound_by": "compute"},
    "native/round_trip.sqlite.xz": {"first": ["CPY006"], "bound_by": "memcpy"},
    "native/thrust.sqlite.xz": {"first": ["MEM001"], "bound_by": "memory_management"},
    "native/managed.sqlite.xz": {"first": ["CPY005"], "never": ["CPY002"]},
    # Four processes, and three files, of one GPU each: what none of them uses is idle.
    "native/forked_slow.sqlite.xz": {
        "first": ["HST001"],
        "headline": 'the range "assemble_boundary" leaves GPU 0 idle',
        "bound_by": "host",
    },
    "native/ranks": {
        "first": ["HST001"],
        "headline": 'the range "assemble_boundary" leaves GPU 0 of ranks 0-2 idle 13.5 ms of each 15.7 ms step',
        "bound_by": "host",
    },
    "captured/growing_history.json.gz": {"every": ["STP002"], "never": ["STP003"], "bound_by": "host"},
    "captured/longer_inputs.json.gz": {"every": ["STP002"], "never": ["STP003"]},
    # The same work takes a tenth of the time in blocks of 16 by 16 threads.
    "captured/small_blocks.json.gz": {"first": ["KRN006"], "only": ["KRN006"], "bound_by": "compute"},
    "captured/square_blocks.json.gz": {"never": ["KRN006"], "only": [], "bound_by": "compute"},
    # A thread that encodes records in Python beside the step, or only sleeps.
    "captured/other_thread.slow.json.gz": {"first": ["HST004"], "names": "encode", "bound_by": "host"},
    "captured/other_thread.fixed.json.gz": {"never": ["HST004"], "bound_by": "host"},
    "captured/lstm.json.gz": {"first": ["LCH001"], "bound_by": "launch"},
    "captured/feed_named.json.gz": {"first": ["INP001"], "names": "get_batch", "bound_by": "input"},
    "captured/feed_unnamed.json.gz": {
        "first": ["HST001"],
        "names": "no call or range was recorded",
        "bound_by": "host",
    },
    "captured/host_python.json.gz": {"first": ["HST001"], "bound_by": "host"},
    "captured/pageable.json.gz": {"first": ["CPY002"], "bound_by": "memcpy"},
    "captured/checkpoint.json.gz": {"first": ["CPY004"], "bound_by": "memcpy"},
    "captured/graph_pinned.json.gz": {"first": ["CPY001"], "never": ["CPY002", "LCH001", "GAP001"], "only": []},
    "captured/healthy_item.json.gz": {"never": ["SYN001"], "only": [], "bound_by": "compute"},
    "captured/pingpong.json.gz": {"only": ["KRN001"], "bound_by": "compute"},
    "captured/churn.json.gz": {"first": ["MEM001"], "bound_by": "memory_management"},
    "captured/isnan_sync.json.gz": {"some": ["SYN001"]},
    "pairs/adam_single.slow.json.xz": {"every": ["LCH002"]},
    "pairs/attn_bias_infer.slow.json.xz": {"first": ["KRN002"], "bound_by": "compute"},
    "pairs/attn_bias_infer.fixed.json.xz": {"little": ["KRN002"]},
    "pairs/batch1_convnet.slow.json.xz": {"first": ["LCH001"], "bound_by": "launch"},
    "pairs/batch1_convnet.fixed.json.xz": {"little": ["LCH001"]},
    "pairs/bias_zero_grad.slow.json.xz": {"every": ["OPR003", "OPR004"], "bound_by": "compute"},
    "pairs/cold_start.slow.json.xz": {"first": ["REC002"], "never": ["HST003"], "bound_by": "host"},
    "pairs/eval_pass.slow.json.xz": {"first": ["LCH001", "HST001"], "every": ["STP001", "SYN001"]},
    "pairs/few_rows.slow.json.xz": {"first": ["KRN004"]},
    "pairs/few_rows.fixed.json.xz": {"little": ["KRN004"], "only": ["KRN005"]},
    "pairs/few_rows_cumsum.slow.json.xz": {"first": ["KRN004"]},
    "pairs/few_rows_cumsum.fixed.json.xz": {"little": ["KRN004"], "only": []},
    "pairs/fp32_conv.slow.json.xz": {"first": ["KRN001"]},
    "pairs/fp32_conv.fixed.json.xz": {"little": ["KRN001"]},
    "pairs/fp32_mlp.slow.json.xz": {"first": ["KRN001"]},
    "pairs/fp32_mlp.fixed.json.xz": {"little": ["KRN001"], "only": []},
    "pairs/frag_sizes.slow.json.xz": {"some": ["MEM001", "MEM004"]},
    "pairs/frag_sizes.fixed.json.xz": {"never": ["MEM001", "MEM004"], "only": []},
    "pairs/fsync_log.slow.json.xz": {"first": ["HST001", "GAP001"], "bound_by": "host"},
    "pairs/fsync_log.fixed.json.xz": {"little": ["HST001", "GAP001"], "only": ["KRN005"]},
    "pairs/fsync_log.slow.sqlite.xz": {"first": ["HST001", "GAP001"]},
    "pairs/gc_callback.slow.json.xz": {"first": ["HST002"], "names": "collect", "bound_by": "host"},
    "pairs/gc_callback.fixed.json.xz": {"little": ["HST002"]},
    "pairs/healthy_conv.json.xz": {"only": [], "bound_by": "compute"},
    "pairs/healthy_graphed.json.xz": {"only": [], "bound_by": "compute"},
    "pairs/mem_full.slow.json.xz": {"every": ["MEM003"], "only": ["KRN005"]},
    "pairs/nchw_unet.slow.json.xz": {"every": ["KRN003"]},
    "pairs/nchw_unet.fixed.json.xz": {"little": ["KRN003"], "only": ["KRN005"]},
    "pairs/norm_silu_chain.slow.json.xz": {"first": ["KRN005"]},
    "pairs/norm_silu_chain.fixed.json.xz": {"little": ["KRN005"], "only": []},
    "pairs/numpy_metrics.slow.json.xz": {"first": ["HST001", "CPY004"], "every": ["CPY004"]},
    # Its host keeps up only without the profiler. What launching leaves is 10 % with the first step's lead, in many small pieces.
    "pairs/numpy_metrics.fixed.json.xz": {"first": ["LCH001"], "little": ["CPY004"], "only": ["LCH001"]},
    "pairs/pageable_rnn.slow.json.xz": {"first": ["CPY002"], "bound_by": "memcpy"},
    "pairs/pageable_rnn.fixed.json.xz": {"little": ["CPY002"]},
    "pairs/pin_inline.slow.json.xz": {"first": ["MEM002"], "bound_by": "memory_management"},
    "pairs/pin_inline.fixed.json.xz": {"little": ["MEM002"]},
    "pairs/pin_inline.slow.sqlite.xz": {"first": ["MEM002"], "bound_by": "memory_management"},
    "pairs/pinned_serial_vit.slow.json.xz": {"first": ["CPY001"], "never": ["CPY002"]},
    "pairs/pinned_serial_vit.fixed.json.xz": {"little": ["CPY001"], "only": ["KRN005"]},
    # Its NCHW convolutions convert layouts for longer than its copies take: 36 % of its kernel time.
    "pairs/side_stream_serial.slow.sqlite.xz": {"first": ["KRN003"], "every": ["CPY001"], "never": ["CPY002"]},
    "pairs/sync_memcpy.slow.sqlite.xz": {"first": ["CPY001", "SYN001", "SYN002"], "bound_by": "memcpy"},
}

LITTLE = 0.05
"""What a rule may still recover in a program without its fault, as a share of the window."""

# What no fixture shows: health, which tests make up file by file, and faults of which there is no real trace.
NO_FIXTURE = {"COM003", "COM007", "HST005", "MPI001", "MPI002", "OPR001", "OPR002", "OPR005"}
# Sampled bandwidths and clocks are in made-up traces; a real capture with samples, in the corpus, is healthy.
NO_FIXTURE |= {"MET002", "MET003", "STP003"}
NO_FIXTURE |= {f"TRC{n:03}" for n in (1, 2, 3, 5, 6, 7, 9)}


def check(path: Path, expected: dict[str, Any]) -> None:
    result = result_of(path)
    rules = [finding.rule for finding in result.findings]
    assert not [rule for rule in result.rules if rule.outcome == "error"]
    if "first" in expected:
        assert rules[0] in expected["first"]
    if "some" in expected:
        assert set(rules) & set(expected["some"])
    assert set(expected.get("every", [])) <= set(rules)
    assert not set(rules) & set(expected.get("never", []))
    for finding in result.findings:
        assert finding.rule not in expected.get("little", []) or (finding.saving.recoverable_share or 0) <= LITTLE
    if "only" in expected:
        assert [f.rule for f in result.findings if f.severity in ("medium", "high")] == expected["only"]
    if "names" in expected:
        assert expected["names"] in result.findings[0].message
    if "headline" in expected:
        assert expected["headline"] in result.verdict.headline
    if "bound_by" in expected:
        assert result.verdict.bound_by == expected["bound_by"]


@pytest.mark.parametrize("file", EXPECTED)
def test_fixture(file):
    check(FIXTURES / file, EXPECTED[file])


def inputs(root: Path) -> list[str]:
    """Every trace of our own under `root`; the ranks of one job count as one."""
    found = [
        p
        for kind in ("kineto", "nsys", "native", "captured", "pairs", "public")
        for p in sorted((root / kind).rglob("*.*"))
        if p.suffix in (".gz", ".xz", ".json", ".sqlite") and "multirank" not in str(p) and p.parent.name != "ranks"
    ]
    jobs = [p for pattern in ("**/*multirank/*", "jobs/*", "native/ranks") for p in sorted(root.glob(pattern))]
    return [str(p.relative_to(root)) for p in [*found, *jobs]]


def test_every_rule_fires_on_some_fixture():
    outcomes = [outcome for file in inputs(FIXTURES) for outcome in result_of(FIXTURES / file).rules]
    fired = {outcome.rule for outcome in outcomes if outcome.outcome == "fired"}
    assert {outcome.rule for outcome in outcomes} - fired == NO_FIXTURE


JOB_RULES = {rule.id for rule in load_rules() if about_the_job(rule)}


def check_savings(path: Path) -> None:
    """No GPU gets back more than its window, and all of them no more than all windows."""
    try:
        result = result_of(path)
    except InputError:
        pytest.skip("no trace")
    windows = {(d.rank, d.device): d.window_ns for d in result.devices}
    recovered, of_the_job = dict.fromkeys(windows, 0), 0
    for finding in result.findings:
        # What is said of the whole job is about one rank and saves the time of the others.
        if finding.rule not in JOB_RULES and (finding.scope.rank, finding.scope.device) in recovered:
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


GOLDEN = Path(__file__).parents[1] / "golden"
GOLDEN_FILES = ("kineto/dataloader.slow.pt.trace.json.gz", "nsys/launch_storm.fixed.graph-level.sqlite")


@pytest.mark.parametrize("file", GOLDEN_FILES)
def test_golden_result(file):
    """The whole document, as a diff shows it. After an intended change run: python -m tests.analysis.test_findings"""
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
