"""A made-up run that waits for its data loader: four steps, two streams, a few thousand kernels, and names that mean harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.catalog.declarations import declared, rule_tables
from traceanalyzer.result.document import (
    Device,
    Evidence,
    Finding,
    Health,
    InputInfo,
    Metric,
    Result,
    RuleOutcome,
    Saving,
    Scope,
    Steps,
    Verdict,
)

HOSTILE = "</script><img src=x onerror=alert(1)>"
HOSTILE_TOO = "<svg/onload=alert(2)>\u2028{{ 7 * 7 }} ]]> \" ' &amp; --> ${alert(3)}"
ORIGIN = 1_700_000_000_123_456_789  # an epoch value that no float64 can hold
STEPS = 4
KERNELS_A_STEP = 700
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
KERNEL_NAMES = [
    HOSTILE,
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 3ul>>(int, ...)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(cudnnTensorStruct)",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
]


SPECS = {name: one.spec for name, one in declared().items() if one.spec is not None} | dict(rule_tables())
"""Of all tables, also of those that are not for rules."""


class Sample:
    """Tables by name, as the report wants them; those not given are empty."""

    def __init__(self, **tables: pa.Table) -> None:
        self.tables = tables

    def table(self, name: str) -> pa.Table:
        if name in self.tables:
            return self.tables[name]
        return SPECS[name].empty()


def rows(table: str, /, **columns: Any) -> pa.Table:
    """A table with its declared schema: scalars are repeated, columns not given are null."""
    spec = SPECS[table]
    length = next(len(value) for value in columns.values() if isinstance(value, list | np.ndarray))
    arrays = []
    for column in spec.columns:
        value = columns.get(column.name)
        if isinstance(value, list | np.ndarray):
            values = [v.item() if isinstance(v, np.generic) else v for v in value]
        else:
            values = [value] * length
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        array = pa.array(values, plain)
        arrays.append(array.dictionary_encode() if pa.types.is_dictionary(column.type) else array)
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def sample() -> tuple[Result, Sample]:
    """The result document and tables of the run; the ledger's figures are those of the tables."""
    rng = np.random.default_rng(7)
    kernels: list[tuple[int, int, int, str, str, str]] = []  # start, end, stream, kind, name, class
    gaps: list[tuple[int, int, str, str | None]] = []
    launches: list[tuple[int, int]] = []
    ranges: list[tuple[int, int, str, str]] = []
    steps: list[tuple[int, int]] = []
    line: list[tuple[int, int, str]] = []
    now = ORIGIN + 2_000_000
    for step in range(STEPS):
        step_host = now - 1_500_000
        if step:
            wait = 8_000_000 + 137 * step
            gaps.append(
                (
                    now,
                    now + wait,
                    "input",
                    HOSTILE_TOO if step == 1 else LOADER,
                )
            )
            line.append((now, now + wait, "idle.input"))
            ranges.append(
                (
                    now + 20_000,
                    now + wait - 30_000,
                    "operator",
                    LOADER,
                )
            )
            now += wait
        begin = now
        kernels.append((now, now + 400_003, 13, "memcpy", "Memcpy HtoD (Pageable -> Device)", "compute"))
        line.append((now, now + 400_003, "exposed_memcpy"))
        now += 400_003
        forward = now
        for k in range(KERNELS_A_STEP):
            duration = int(rng.integers(2_000, 18_000))
            kernels.append((now, now + duration, 7, "kernel", KERNEL_NAMES[int(rng.integers(0, 5))], "compute"))
            line.append((now, now + duration, "compute"))
            launches.append((now - 60_000, now - 55_000))
            now += duration
            if k % 3 == 0:
                pause = int(rng.integers(700, 2_500))
                cause = "turnaround" if k % 2 else "launch_latency"
                gaps.append((now, now + pause, cause, None))
                line.append((now, now + pause, f"idle.{cause}"))
                now += pause
            if k % 35 == 0:
                ranges.append((now - 90_000, now - 61_000, "operator", f"aten::conv2d_{k // 35 % 4}"))
                ranges.append((now - 85_000, now - 66_000, "operator", "aten::_convolution"))
        kernels.append(
            (now - 900_000, now + 350_000, 20, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication")
        )
        line.append((now, now + 350_000, "exposed_communication"))
        now += 350_000
        steps.append((begin, now))
        ranges.append((step_host, now - 400_000, "annotation", f"ProfilerStep#{step}"))
        ranges.append((forward - 100_000, now - 800_000, "nvtx", "forward" if step else HOSTILE))
    start, end = line[0][0], line[-1][1]
    tables = Sample(
        gpu_ops=_gpu_ops(kernels),
        ledger_intervals=rows("ledger_intervals", rank=0, device=0, line=[x[2] for x in line], **_span(line)),
        gaps=rows("gaps", rank=0, device=0, cause=[g[2] for g in gaps], range_name=[g[3] for g in gaps], **_span(gaps)),
        launches=_launches(launches, kernels),
        api_calls=rows(
            "api_calls",
            rank=0,
            process=4242,
            thread=4242,
            name="cudaLaunchKernel",
            **{"class": "launch"},
            **_span(launches),
        ),
        host_ranges=rows(
            "host_ranges",
            rank=0,
            process=4242,
            thread=4242,
            category=[r[2] for r in ranges],
            name=[r[3] for r in ranges],
            depth=0,
            **_span(ranges),
        ),
        threads=rows("threads", rank=0, process=4242, thread=[4242], name="python3"),
        step_stats=rows(
            "step_stats",
            rank=0,
            device=0,
            index=list(range(STEPS)),
            name=[f"ProfilerStep#{i}" for i in range(STEPS)],
            method="annotation",
            **_span(steps),
        ),
        kernel_stats=_kernel_stats(kernels, end - start),
    )
    return _result(line, gaps, kernels, steps), tables


def _span(items: list[Any]) -> dict[str, list[int]]:
    return {"start_ns": [item[0] for item in items], "end_ns": [item[1] for item in items]}


def _gpu_ops(kernels: list[tuple[int, int, int, str, str, str]]) -> pa.Table:
    return rows(
        "gpu_ops",
        rank=0,
        process=4242,
        device=0,
        context=1,
        stream=[k[2] for k in kernels],
        kind=[k[3] for k in kernels],
        name=[k[4] for k in kernels],
        quarantined=False,
        **{"class": [k[5] for k in kernels]},
        **_span(kernels),
    )


def _launches(calls: list[tuple[int, int]], kernels: list[tuple[int, int, int, str, str, str]]) -> pa.Table:
    """Each kernel of stream 7 has a call, in the same order."""
    launched = [(row, kernel) for row, kernel in enumerate(kernels) if kernel[2] == 7]
    return rows(
        "launches",
        rank=0,
        process=4242,
        thread=4242,
        device=0,
        stream=7,
        api_name="cudaLaunchKernel",
        op=[row for row, _ in launched],
        op_start_ns=[kernel[0] for _, kernel in launched],
        op_end_ns=[kernel[1] for _, kernel in launched],
        op_kind="kernel",
        first=True,
        **_span(calls),
    )


def _kernel_stats(kernels: list[tuple[int, int, int, str, str, str]], window: int) -> pa.Table:
    durations: dict[tuple[str, str], list[int]] = {}
    for start, end, _, kind, name, work in kernels:
        if kind == "kernel":
            durations.setdefault((name, work), []).append(end - start)
    found = sorted(durations.items())
    return rows(
        "kernel_stats",
        rank=0,
        device=0,
        name=[key[0] for key, _ in found],
        count=[len(d) for _, d in found],
        total=[sum(d) for _, d in found],
        mean=[sum(d) // len(d) for _, d in found],
        longest=[max(d) for _, d in found],
        share=[sum(d) / window for _, d in found],
        **{"class": [key[1] for key, _ in found]},
    )


def _result(line: list[Any], gaps: list[Any], kernels: list[Any], steps: list[tuple[int, int]]) -> Result:
    start, end = line[0][0], line[-1][1]
    amount: dict[str, int] = {}
    for a, b, name in line:
        amount[name] = amount.get(name, 0) + b - a
    idle = {name.removeprefix("idle."): ns for name, ns in amount.items() if name.startswith("idle.")}
    window = end - start
    inputs = [gap for gap in gaps if gap[2] == "input"]
    small = [gap for gap in gaps if gap[2] == "launch_latency"]
    device = Device(
        rank=None,
        device=0,
        name="NVIDIA H100 80GB HBM3",
        window_ns=window,
        busy_ns=window - sum(idle.values()),
        compute_ns=amount["compute"],
        communication_ns=STEPS * 1_250_000,
        exposed_communication_ns=amount["exposed_communication"],
        memcpy_ns=amount["exposed_memcpy"],
        exposed_memcpy_ns=amount["exposed_memcpy"],
        exposed_memset_ns=0,
        idle_ns=sum(idle.values()),
        max_gap_ns=max(b - a for a, b, *_ in gaps),
        idle_by_cause_ns=idle,
        gpu_op_count=len(kernels),
        kernel_count=len(kernels) - STEPS,
    )
    lost = sum(b - a for a, b, *_ in inputs)
    findings = [
        Finding(
            rule="INP001",
            slug="data-loader-bound",
            title="The GPU waits for the data loader",
            severity="high",
            confidence="high",
            message=f"GPU 0 is idle {lost / window:.0%} of the time while the launching thread fetches the next batch, once a step.",
            scope=Scope(None, 0),
            metrics={
                "lost": Metric(lost, "ns"),
                "waits": Metric(len(inputs), "count"),
                "longest_share": Metric(0.34, "share"),
            },
            saving=Saving(lost, lost / window, window / (window - lost), lost // STEPS),
            evidence=[
                Evidence(None, 0, a, b, f"input wait before step {i + 1}") for i, (a, b, *_) in enumerate(inputs)
            ],
            recommend=[
                {
                    "pytorch": "`DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4)`"
                },
                {"pytorch": "`batch = batch.to(device, non_blocking=True)`"},
                {"jax": "prefetch two batches with `flax.jax_utils.prefetch_to_device(iterator, 2)`"},
            ],
            references=["https://pytorch.org/docs/stable/data.html", "javascript:alert(4)"],
        ),
        Finding(
            rule="LCH001",
            slug="launch-storm",
            title=f"The GPU waits for kernel launches {HOSTILE}",
            severity="low",
            confidence="medium",
            message=f"{len(small)} gaps before kernels shorter than 20 us; for example before {HOSTILE}",
            scope=Scope(None, 0),
            metrics={"gaps": Metric(len(small), "count")},
            saving=Saving(
                idle["launch_latency"],
                idle["launch_latency"] / window,
                window / (window - idle["launch_latency"]),
                None,
            ),
            evidence=[
                Evidence(None, 0, a, b, HOSTILE if i == 0 else f"gap of {b - a} ns")
                for i, (a, b, *_) in enumerate(small[:10])
            ],
            recommend=[
                {"pytorch": '`torch.compile(model, mode="reduce-overhead")`'},
                {"cuda": "capture the step in a CUDA graph"},
            ],
            references=[],
        ),
        Finding(
            rule="TRC004",
            slug="short-trace",
            title="The trace is short",
            severity="info",
            confidence="high",
            message="Only 4 steps were recorded; shares can be off by a step's worth.",
            scope=Scope(None, None),
            metrics={},
            saving=Saving(None, None, None, None),
            evidence=[],
            recommend=[{"any": "record 20 steps or more after the warm-up"}],
            references=[],
        ),
    ]
    return Result(
        tool={"name": "traceanalyzer", "version": "0.1.0"},
        inputs=[
            InputInfo(
                "/home/someone/secret/resnet50.pt.trace.json.gz",
                "ab" * 32,
                12_345_678,
                "kineto",
                "PyTorch 2.6",
                None,
                None,
            )
        ],
        health=[Health("TRC004", "info", "Only 4 steps were recorded.", 1, None)],
        devices=[device],
        steps=[Steps(None, 0, STEPS, "annotation", steps[1][1] - steps[1][0], steps[2][1] - steps[2][0], 0.013)],
        findings=findings,
        rules=[
            RuleOutcome("INP001", "fired", None, figures={"lost": "idle time", "waits": "waits for a batch"}),
            RuleOutcome("LCH001", "fired", None, figures={"gaps": "gaps"}),
            RuleOutcome("SYN001", "clean", None),
            RuleOutcome("COM001", "not_applicable", "no collectives in this trace"),
            RuleOutcome("KRN002", "could_not_judge", f"no occupancy recorded {HOSTILE}"),
        ],
        verdict=Verdict(
            "input",
            f"GPU 0 is idle {sum(idle.values()) / window:.0%} of the time; "
            f"the data loader causes {lost / window * 100:.0f} points of it.",
        ),
    )


def many_kernels(n: int) -> Sample:
    """n kernels of 1 to 9 us on two streams, with a ledger of compute and turnaround: for trying the timeline at size."""
    rng = np.random.default_rng(1)
    duration = rng.integers(1_000, 9_000, n)
    pause = rng.integers(100, 2_000, n)
    start = ORIGIN + np.cumsum(duration + pause) - duration
    name = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, n), pa.int32()), KERNEL_NAMES)

    def constant(value: Any, kind: pa.DataType) -> pa.Array:
        return (
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(n), pa.int32()), [value])
            if kind == "name"
            else pa.array(np.full(n, value), kind)
        )

    ops = {
        "rank": constant(0, pa.int32()),
        "process": constant(1, pa.int64()),
        "start_ns": pa.array(start),
        "end_ns": pa.array(start + duration),
        "device": constant(0, pa.int32()),
        "context": constant(1, pa.int64()),
        "stream": pa.array(rng.integers(7, 9, n)),
        "kind": constant("kernel", "name"),
        "name": name,
        "class": constant("compute", "name"),
        "quarantined": pa.array(np.zeros(n, dtype=bool)),
    }
    lines = pa.DictionaryArray.from_arrays(
        pa.array(np.tile([0, 1], n)[:-1], pa.int32()), ["compute", "idle.turnaround"]
    )
    edges = np.column_stack([start, start + duration]).ravel()
    intervals = {
        "rank": pa.array(np.zeros(2 * n - 1), pa.int32()),
        "device": pa.array(np.zeros(2 * n - 1), pa.int32()),
        "line": lines,
        "start_ns": pa.array(edges[:-1]),
        "end_ns": pa.array(edges[1:]),
    }
    return Sample(gpu_ops=pa.table(ops), ledger_intervals=pa.table(intervals))


def named_kernels(names: list[str]) -> Sample:
    """`many_kernels` with these names, and with all columns."""
    tables = many_kernels(len(names))
    ops = tables.table("gpu_ops")
    columns = {name: ops[name].to_pylist() for name in ops.column_names}
    return Sample(**{**tables.tables, "gpu_ops": rows("gpu_ops", **{**columns, "name": names})})
