"""The ledgers as plain text: one GPU with bars, several beside each other, many by their spread."""

from __future__ import annotations

from traceanalyzer.result.document import Device, Result, Steps
from traceanalyzer.result.gpus import (
    SIDE_BY_SIDE,
    lines_side_by_side,
    notable_gpus,
    parted_lines,
    spread,
    steps_of_gpus,
)
from traceanalyzer.result.words.gpu_names import device_name, short_names
from traceanalyzer.result.words.unprofiled import steps_without_profiler
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary.lines import line_words

WITH_BARS = 2
"""With more GPUs than this the ledgers stand beside each other."""
COLUMNS = 8
OF_THEIR_OWN = 3
"""GPUs that get a column of their own beside the spread."""
LABEL, CELL, ENDS, DURATION = 24, 9, 18, 10
Gpus = list[tuple[Device, Steps | None]]


def ledgers(result: Result) -> list[str]:
    """The ledgers of all GPUs, each block after an empty line."""
    gpus = gpus_of(result)
    if len(gpus) > SIDE_BY_SIDE:
        return ["", *_spread(result, gpus)]
    if len(gpus) > WITH_BARS:
        blocks = [gpus[first : first + COLUMNS] for first in range(0, len(gpus), COLUMNS)]
        return [line for block in blocks for line in ("", *_table(ledgers_side_by_side(result, block)))]
    return [line for one in gpus for line in ("", *_ledger(*one))]


def gpus_of(result: Result) -> Gpus:
    """Each GPU and its steps."""
    return list(zip(result.devices, steps_of_gpus(result), strict=True))


def _ledger(device: Device, steps: Steps | None) -> list[str]:
    """One GPU: time, share and a bar a line."""
    name = f" ({device.name})" if device.name else ""
    work = f"{format_count(device.gpu_op_count)} operations, {format_count(device.kernel_count)} kernels"
    lines = [f"{device_name(device)}{name}: window {format_duration(device.window_ns)}, {work}"]
    for line, ns in parted_lines(device).items():
        if ns:
            share = ns / device.window_ns if device.window_ns else 0
            bar = "█" * round(share * 40)
            row = f"  {line_words(line):<{LABEL}}{format_duration(ns):>{DURATION}}  {format_share(share):>6}  {bar}"
            lines.append(row.rstrip())
    if steps:
        median, p95 = format_duration(steps.median_ns), format_duration(steps.p95_ns)
        count = f"{steps.count} step{'s' if steps.count != 1 else ''}"
        lines.append(f"  {count} ({steps.method}): median {median}, 95th percentile {p95}")
        if without := steps_without_profiler(steps, format_duration):
            lines.append(f"  a step takes {without}")
    return lines


def ledgers_side_by_side(result: Result, gpus: Gpus) -> list[tuple[str, list[str]]]:
    """Rows of a table with a column a GPU: its ledger as shares of its window, its work and its steps."""
    names, block, timed = short_names(result.devices), [device for device, _ in gpus], [steps for _, steps in gpus]
    rows = [("share of the window", [names[device.rank, device.device] for device in block])]
    every = dict(zip(map(id, result.devices), lines_side_by_side(result.devices), strict=True))
    shares = [{line: ns / max(d.window_ns, 1) for line, ns in every[id(d)].items()} for d in block]
    lines = dict.fromkeys(line for ledger in shares for line in ledger)
    for line in lines:
        if any(ledger.get(line) for ledger in shares):
            rows.append((line_words(line), [format_share(ledger.get(line, 0)) for ledger in shares]))
    rows.append(("window", [format_duration(device.window_ns) for device in block]))
    rows.append(("kernels", [format_count(device.kernel_count) for device in block]))
    if any(timed):
        rows.append(("steps", [format_count(s.count) if s else "-" for s in timed]))
        rows.append(("median step", [format_duration(s.median_ns) if s else "-" for s in timed]))
        bare = [s.unprofiled_step_ns if s else None for s in timed]
        if any(s and steps_without_profiler(s, format_duration) for s in timed):
            rows.append(("unprofiled, about", ["-" if ns is None else format_duration(ns) for ns in bare]))
    return rows


def _table(rows: list[tuple[str, list[str]]]) -> list[str]:
    return [f"  {label:<{LABEL}}" + "".join(f"{cell:>{CELL}}" for cell in cells) for label, cells in rows]


def _spread(result: Result, gpus: Gpus) -> list[str]:
    lines = [f"{len(gpus):,} GPUs, and those that differ most; all of them are in --format json"]
    for label, (low, middle, high), cells in spread_rows(result, gpus):
        left = f"  {label:<{LABEL}}{low:>{ENDS}}{middle:>9}{high:>{ENDS}} "
        lines.append(left + "".join(f"{cell:>9}" for cell in cells))
    return lines


def spread_rows(result: Result, gpus: Gpus) -> list[tuple[str, list[str], list[str]]]:
    """Many GPUs: of each line least, median and most with the GPUs that have it, and columns for those that matter most. The first row
    has the headings."""
    devices, short = result.devices, short_names(result.devices)
    own = ledgers_side_by_side(result, [gpus[at] for at in notable_gpus(result, OF_THEIR_OWN)])
    columns = dict(own)
    names = [short[device.rank, device.device] for device in devices]
    empty = ["-"] * len(own[0][1])
    rows = [(own[0][0], ["least", "median", "most"], own[0][1])]
    for one in spread(devices):
        ends = (format_share(one.least), names[one.least_at]), (format_share(one.most), names[one.most_at])
        low, high = _with_names(*ends)
        label = line_words(one.line)
        # A line that none of these GPUs has is 0 on all of them.
        rows.append((label, [low, format_share(one.median), high], columns.get(label, ["0%" for _ in empty])))
    windows = [device.window_ns for device in devices]
    rows.append(("window", _ends(windows, names), columns["window"]))
    timed = [(steps.median_ns, name) for (_, steps), name in zip(gpus, names, strict=True) if steps]
    if timed:
        medians = _ends([ns for ns, _ in timed], [name for _, name in timed])
        rows.append(("median step", medians, columns.get("median step", empty)))
    return rows


def _ends(values: list[int], names: list[str]) -> list[str]:
    """Shortest, median and longest of some times, the ends with their GPUs."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    first, middle, last = (
        (format_duration(values[at]), names[at]) for at in (order[0], order[len(order) // 2], order[-1])
    )
    low, high = _with_names(first, last)
    return [low, middle[0], high]


def _with_names(low: tuple[str, str], high: tuple[str, str]) -> list[str]:
    """The ends of a spread as (figure, GPU); where there is none, no GPU is at an end."""
    return [low[0], high[0]] if low[0] == high[0] else [" ".join(low), " ".join(high)]
