"""Made-up logs of DeepSpeed's, in the forms of its versions, and a sink that keeps what is read of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import traceanalyzer as ta
from tests.evidence.memory_snapshots import Kept, source
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.deepspeed_log import KIND
from traceanalyzer.result.document import Result

FIXTURES = Path(__file__).parents[2] / "fixtures" / "evidence" / "deepspeed_log"
DASHES = "-" * 26
NEW, OLD, FIRST = "0.19", "0.9", "0.5"
"""Versions in whose form a report is printed."""


def timers(fwd: float, bwd: float, opt: float, prefix: str = "[Rank 0] ", long: bool = False) -> list[str]:
    """The lines of one step, with the names of 0.10 and later or the long ones before."""
    f, b = ("forward", "backward") if long else ("fwd", "bwd")
    inner, reduce = bwd * 0.6, bwd * 0.39
    micro = f"{f}_microstep: {fwd:.2f} | {b}_microstep: {bwd:.2f} | {b}_inner_microstep: {inner:.2f} | "
    micro += f"{b}_allreduce_microstep: {reduce:.2f} | step_microstep: {opt:.2f}"
    whole = f"{f}: {fwd:.2f} | {b}: {bwd:.2f} | {b}_inner: {inner:.2f} | {b}_allreduce: {reduce:.2f} | step: {opt:.2f}"
    return [f"{prefix}time (ms) | {micro}", f"{prefix}time (ms) | {whole}"]


def many_timers(steps: int = 30, grows: float = 0.0, **how: Any) -> list[str]:
    """Steps of 2, 10 and 5 ms with some noise, the optimizer's growing by so many ms from one to the next."""
    return [
        line
        for at in range(steps)
        for line in timers(2 + 0.1 * (at % 3), 10 + 0.2 * (at * 7 % 5), 5 + grows * at + 0.1 * (at * 5 % 4), **how)
    ]


@dataclass
class Shape:
    """A module to print: its class, what PyTorch prints of it, parameters, MACs, FLOPs, seconds, and what is inside."""

    kind: str
    shape: str = ""
    params: int = 0
    macs: float = 0
    flops: float = 0
    seconds: float = 1e-4
    inside: dict[str, Shape] = field(default_factory=dict)


def scaled(value: float, after: str, new: bool) -> str:
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= size and (new or prefix != "T" or after == "FLOPS"):
            return f"{round(value / size, 2)} {prefix}{after}"
    return f"{value:g} {after}" if after or not new else f"{value:g} "


def duration(value: float) -> str:
    for size, prefix in ((1e9, "G"), (1.0, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= size:
            return f"{round(value / size, 2)} {prefix}s"
    return f"{value:g} s"


def mlp(
    rows: int = 2048, width: int = 512, blocks: int = 2, sharded: bool = False, root_seconds: float = 2e-3
) -> Shape:
    """Blocks of a normalisation, two linear layers and an activation; with ZeRO-3's placeholders and double counting if `sharded`."""
    times, inside = 2 if sharded else 1, {}
    for at in range(blocks):
        wide = 4 * width
        up, down = (wide, width) if sharded else (width * wide + wide, width * wide + width)
        linear = {"macs": float(times * rows * width * wide), "flops": 2.0 * times * rows * width * wide}
        parts = {
            "0": Shape("LayerNorm", f"({width},), eps=1e-05, elementwise_affine=True", 2 * width, 0, 5.0 * rows * width, 8e-5),
            "1": Shape("Linear", f"in_features={width}, out_features={wide}, bias=True", up, **linear),
            "2": Shape("GELU", "approximate='none'", 0, 0, float(rows * wide), 6e-5),
            "3": Shape("Linear", f"in_features={wide}, out_features={width}, bias=True", down, **linear),
        }  # fmt: skip
        inside[str(at)] = _around("Sequential", parts)
    whole = _around("Sequential", {"0": _around("Sequential", inside)})
    whole.seconds = root_seconds
    return whole


def _around(kind: str, inside: dict[str, Shape]) -> Shape:
    kids = inside.values()
    params, macs, flops = sum(k.params for k in kids), sum(k.macs for k in kids), sum(k.flops for k in kids)
    return Shape(kind, "", params, macs, flops, sum(k.seconds for k in kids), inside)


def tree(one: Shape, whole: Shape, version: str, name: str = "", indent: int = 0) -> list[str]:
    """The lines that PyTorch prints of a module with the profiler's figures in it."""
    new = version == NEW
    params = scaled(one.params, "", new).strip()
    between, last = (" = ", "latency") if new else (", ", "time" if version == FIRST else "latency")
    shares = [
        f"{100 * a / b if b else 0:.2f}%"
        for a, b in ((one.params, whole.params), (one.macs, whole.macs), (one.seconds, whole.seconds))
    ]
    rate = one.flops / one.seconds if one.seconds else 0.0
    figures = f"{params}{between}{shares[0]} Params, {scaled(one.macs, 'MACs', new)}{between}{shares[1]} MACs, "
    figures += f"{duration(one.seconds)}{between}{shares[2]} {last}, {scaled(rate, 'FLOPS', True)}, {one.shape}"
    figures = figures if one.shape or version == FIRST else figures.removesuffix(", ")
    pad = " " * indent
    head = f"{pad}({name}): {one.kind}(" if name else f"{one.kind}("
    if not one.inside:
        return [f"{head}{figures})"]
    kids = [line for key, kid in one.inside.items() for line in tree(kid, whole, version, key, indent + 2)]
    return [head, f"{pad}  {figures}", *kids, f"{pad})"]


def profile(
    model: Shape | None = None,
    version: str = NEW,
    engine: bool = True,
    step: int = 6,
    batch: int = 2048,
    prefix: str = "",
) -> list[str]:
    """A report of the flops profiler."""
    model = model or mlp(batch)
    gpu = "gpu" if version in (OLD, FIRST) else "GPU"
    flops = scaled(model.flops, "", version == NEW)
    fields = (
        [
            ("world size", "2"),
            ("data parallel size", "2"),
            ("model parallel size", "1"),
            ("batch size per GPU", str(batch)),
        ]
        if engine
        else []
    )
    fields += [
        (f"params per {gpu}", scaled(model.params, "", version == NEW)),
        ("params of model = params per GPU * mp_size", scaled(model.params, "", True)),
    ]
    fields += [("fwd MACs per GPU", scaled(model.macs, "" if version == FIRST else "MACs", version == NEW))]
    fields += [("fwd flops per GPU = 2 * fwd MACs per GPU" if version == FIRST else "fwd flops per GPU", flops)]
    fields += [("fwd flops of model = fwd flops per GPU * mp_size", flops), ("fwd latency", "4.0 ms")]
    fields += [("fwd FLOPS per GPU = fwd flops per GPU / fwd latency", scaled(model.flops / 4e-3, "FLOPS", True))]
    if engine:
        rate = scaled(3 * model.flops / 20e-3, "FLOPS", True)
        fields += [("bwd latency", "10.0 ms"), ("step latency", "6.0 ms"), ("iter latency", "20.0 ms")]
        fields += [
            (f"FLOPS per GPU = {'3.0' if version == OLD else '3'} * fwd flops per GPU / iter latency", rate),
            ("samples/second", "204800.0"),
        ]
    width = 70 if version == NEW else 60
    lines = ["", f"{DASHES} DeepSpeed Flops Profiler {DASHES}", f"Profile Summary at step {step}:", "Notations:"]
    lines += ["data parallel size (dp_size), model parallel size(mp_size),", ""]
    lines += [f"{name + ': ':<{width}}  {value:<8}" for name, value in fields]
    lines += [
        "",
        f"{'-' * 29} Aggregated Profile per GPU {'-' * 29}",
        "Top 1 modules in terms of params, MACs or fwd latency at different model depths:",
    ]
    lines += ["depth 0:", f"    params      - {{'{model.kind}': '1 M'}}"]
    lines += [
        "",
        f"{'-' * 30} Detailed Profile per GPU {'-' * 30}",
        "Each module profile is listed after its name in the following order: ",
        "",
    ]
    lines += [*tree(model, model, version), "-" * 78]
    return [prefix + line for line in lines]


def comms(
    rows: Iterable[tuple[str, Sequence[tuple[Any, ...]]]], straggler: bool = False, prefix: str = ""
) -> list[str]:
    """A summary of the comms logger: by operation (size, calls, total, average, transfer, waiting) in ms."""
    heads = (
        "Comm. Op",
        "Message Size",
        "Count",
        "Total Latency(ms)",
        "Avg Latency(ms)",
        "tput_avg (Gbps)",
        "busbw_avg (Gbps)",
    )
    lines = ["".join(f"{head:<20}" for head in heads)]
    for op, sizes in rows:
        lines.append(op)
        for size, calls, total, average, *_ in sizes:
            lines.append(f"{'':<20}{size:<20}{calls:<20}{total:<20.2f}{average:<20.2f}{1.5:<20.2f}{1.4:<20.2f}")
    if straggler:
        heads = (
            "Comm. Op",
            "Message Size",
            "Count",
            "Total comm lat(ms)",
            "Total straggler(ms)",
            "Avg comm lat(ms)",
            "Avg straggler(ms)",
        )
        lines += ["_" * 31, "Breakdown with straggler effect", "-" * 31, "".join(f"{head:<20}" for head in heads)]
        for op, sizes in rows:
            lines.append(op)
            for size, calls, _, _, transfer, waiting in sizes:
                lines.append(
                    f"{'':<20}{size:<20}{calls:<20}{transfer:<20.2f}{waiting:<20.2f}{transfer / calls:<20.2f}{waiting / calls:<20.2f}"
                )
    return [prefix + line for line in lines]


def write(folder: Path, *lines: str, name: str = "log.txt", end: str = "\n") -> Path:
    path = folder / name
    path.write_bytes((end.join(lines) + end).encode())
    return path


def read(path: Path) -> tuple[Kept, Marks]:
    """What is read, with each table as it is declared."""
    sink = Kept()
    marks = KIND.read(source(path), sink, lambda size: None)
    for name, batches in sink.batches.items():
        for batch in batches:
            batch.validate(full=True)
            spec = next(spec for spec in KIND.tables if spec.name == name)
            assert batch.schema.equals(pa.schema([column for column in spec.schema if column.name != "rank"])), name
    return sink, marks


def told(*paths: Path) -> Result:
    """The result of these files; no rule fails."""
    result = ta.analyze(ta.load(list(paths)))
    assert [one for one in result.rules if one.outcome == "error"] == []
    return result


def knows(path: Path) -> bool:
    return KIND.sniff(source(path))
