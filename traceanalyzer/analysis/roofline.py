"""The roofline of the result: what matrix work reaches by the shapes that were recorded, as figures, a sentence and a section."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from traceanalyzer.columns import frames
from traceanalyzer.model.tables import Tables
from traceanalyzer.names import capitalized, readable_name
from traceanalyzer.result.document import Result
from traceanalyzer.result.roofline import KNOWN, LEAST_NS, MOSTLY, POSSIBLE, WORTH_A_WORD, Rate, Roofline
from traceanalyzer.result.sections import Block, Grid, Point, Scatter, Section, Unit, Words
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.units import format_count, format_share

Row = dict[str, Any]
_DIGITS = 6


def rooflines(tables: Tables, ranks: Mapping[int, int | None], shared: Collection[frames.Key]) -> list[Roofline]:
    """One a GPU with products, in the order of the tables; none of GPUs that several files share (`shared`: their users)."""
    return [_roofline(row, ranks) for row in _rows(tables, shared)]


def rates(tables: Tables, shared: Collection[frames.Key]) -> dict[frames.Key, Rate]:
    """What can be said in a sentence, by (rank, device) of the tables."""
    found = {(row["rank"], row["device"]): _rate(row) for row in _rows(tables, shared)}
    return {key: rate for key, rate in found.items() if rate}


def _rows(tables: Tables, shared: Collection[frames.Key]) -> Iterator[Row]:
    for row in tables.table("roofline").to_pylist():
        if (row["rank"], row["device"]) not in shared and row["known_time"] and row["compute_time"]:
            yield row


def _known(row: Row) -> float:
    return float(row["known_time"] / (row["known_time"] + row["unknown_time"]))


def _judged(row: Row) -> float:
    return float(row["judged_time"] / row["known_time"])


def _roofline(row: Row, ranks: Mapping[int, int | None]) -> Roofline:
    known, judged = _known(row), _judged(row)
    possible = row["peak_time"] <= POSSIBLE * row["judged_time"]
    whole = row["step_time"] and possible and known >= KNOWN
    time = row["judged_time"]
    steps = max(row["steps"], 1)
    return Roofline(
        rank=ranks[row["rank"]],
        device=row["device"],
        gpu=row["gpu"],
        precision=row["precision"],
        precision_share=_rounded(row["precision_share"]),
        peak_tflops=row["peak"],
        memory_bytes_per_s=row["bandwidth"],
        matrix_share=_share(row["matrix_time"], row["compute_time"]),
        known_share=_rounded(known),
        judged_share=_rounded(judged),
        flops=row["flops"],
        tflops=_rounded(row["flops"] / row["known_time"] / 1e3),
        peak_share=_share(row["peak_time"], time) if time else None,
        roof_share=_share(row["roof_time"], time) if time else None,
        memory_bound_share=min(_share(row["memory_time"], time), 1.0) if time else None,
        steps=row["steps"],
        step_flops=round(row["step_flops"] / steps),
        step_tflops=_rounded(row["step_flops"] / row["step_time"] / 1e3) if whole else None,
        mfu=_share(row["step_peak_time"], row["step_time"]) if whole and judged >= KNOWN else None,
        note=_note(row),
    )


def _note(row: Row) -> str | None:
    """What is not known, the gravest first."""
    if not row["known_gpu"]:
        name = row["gpu"]
        return f"no peaks are known of {name}" if name else "the trace does not say what GPU this is"
    if row["peak_time"] > POSSIBLE * row["judged_time"]:
        return "more comes out than this GPU can give, so that shapes or its name mislead"
    if _known(row) < KNOWN:
        return f"{format_share(1 - _known(row))} of the time of matrix kernels is of operators that do not tell what they compute"
    if _judged(row) < KNOWN:
        return f"in which precision {format_share(1 - _judged(row))} of it runs is not told, or no peak is known of it"
    if row["assumed"]:
        return f"attention of {format_count(row['assumed'])} calls was counted as not causal: whether it is was not recorded"
    return None


def _rate(row: Row) -> Rate | None:
    """None where not enough is known, where there is too little of it, or where what comes out cannot be."""
    spoken_of = _known(row) * _judged(row)
    if not row["known_gpu"] or spoken_of < MOSTLY or row["judged_time"] < LEAST_NS:
        return None
    matrix = round(row["matrix_time"] * spoken_of)
    if matrix < WORTH_A_WORD * row["compute_time"]:
        return None
    by_memory = row["memory_time"] / row["judged_time"]
    peak = f"{row['peak']:,.0f} TFLOP/s in {row['precision']}"
    memory = f"{row['bandwidth'] / 1e12:.3g} TB/s"
    if by_memory <= 1 - KNOWN:
        least = row["peak_time"]
        roof = f"the peak of {peak if row['precision_share'] >= KNOWN else 'their precisions'}"
    else:
        least = row["roof_time"]
        roof = (
            f"the {memory} of its memory" if by_memory >= KNOWN else f"what {peak} and {memory} allow for their sizes"
        )
    if least > POSSIBLE * row["judged_time"]:
        return None
    return Rate(roof, row["judged_time"], least, matrix, row["compute_time"])


def _share(part: float, whole: float) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _rounded(value: Any) -> Any:
    return None if value is None else round(value, _DIGITS)


NAME = "roofline"


def roofline_sections(result: Result, tables: Tables) -> list[Section]:
    """What the matrix work of each GPU reaches, and operators under the roofs of theirs; none where nothing is known."""
    if not result.roofline:
        return []
    gpu = gpu_namer(result.devices)
    blocks: list[Block] = [
        Words(capitalized(_sentence(one, gpu(one.rank, one.device)))) for one in result.roofline[:MOST_GPUS]
    ]
    rows = _merged(tables.table("product_stats").to_pylist())
    if (left := len(result.roofline) - MOST_GPUS) > 0:
        blocks.append(Words(f"{format_count(left)} more GPUs are in the result as JSON."))
    blocks += _plane(rows, result)
    blocks.append(_grid(rows))
    blocks.append(Words(HOW))
    return [Section(NAME, "What kernels could be", blocks, order=45)]


MOST_GPUS = 4
HOW = (
    "Floating-point operations are those that the recorded shapes take (a multiplication and an addition are two), bytes every input "
    "and output once, peaks what the vendor states, dense and at its boost clock. A share of a roof is the least time by both over "
    "the time taken."
)


def _sentence(one: Roofline, gpu: str) -> str:
    """Of one GPU, all that is known."""
    name = f" ({one.gpu})" if one.gpu else ""
    words = f"{gpu}{name}: matrix products, convolutions and attention run at {_three(one.tflops)} TFLOP/s"
    if one.peak_share is not None:
        words += _of_the_peak(one)
    words += f"; they are {format_share(one.matrix_share)} of its compute time."
    if one.memory_bound_share and one.roof_share is not None:
        words += (
            f" By their sizes, memory limits {format_share(one.memory_bound_share)} of that time; of what peak and memory allow they "
            f"reach {format_share(one.roof_share)}."
        )
    if one.mfu is not None and one.step_tflops is not None:
        unit = "A step" if one.steps else "The window"
        words += (
            f" {unit} takes {_three(one.step_flops / 1e12)} TFLOP at {_three(one.step_tflops)} TFLOP/s: model FLOPs utilization (MFU) "
            f"{format_share(one.mfu)}."
        )
    return f"{words} Not known: {one.note}." if one.note else words


def _of_the_peak(one: Roofline) -> str:
    """What share of which peak, and of how much of it that is told."""
    alike = one.precision_share is not None and one.precision_share >= KNOWN
    peak = (
        f"the peak of {one.peak_tflops:,.0f} TFLOP/s in {one.precision}" if alike else "the peaks of their precisions"
    )
    share = format_share(one.peak_share or 0.0)
    return f", {share} of {peak}" if one.judged_share >= 1 else f"; those of known precision reach {share} of {peak}"


_ALIKE = ("operator", "sizes", "precision", "kernel", "bound", "intensity", "peak")


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Those of all GPUs that are alike as one, the longest first: `time`, `count`, operations in `all`, least time `roof`."""
    sums: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in _ALIKE)
        own = sums.setdefault(
            key, {**dict(zip(_ALIKE, key, strict=True)), "time": 0, "count": 0, "all": 0, "roof": 0.0}
        )
        own["time"] += row["kernel_time"]
        own["count"] += row["count"]
        own["all"] += row["flops"] * row["count"]
        own["roof"] = None if row["roof_share"] is None else own["roof"] + row["roof_share"] * row["kernel_time"]
    return sorted(sums.values(), key=lambda one: (-one["time"], str(one["operator"]), str(one["sizes"])))


def _tflops(row: Row) -> float:
    return float(row["all"] / max(row["time"], 1) / 1e3)


def _plane(rows: Sequence[Row], result: Result) -> list[Block]:
    """The operators whose intensity is known, under the roofs of their GPU."""
    told = [row for row in rows if row["intensity"] and row["time"] > 0]
    if not told:
        return []
    points = [
        Point(
            f"{row['operator']} of {row['sizes']} ({row['precision'] or 'precision not told'})",
            row["intensity"],
            _tflops(row),
            row["time"],
        )
        for row in told
    ]
    return [Scatter("Operators under the roof", "FLOP per byte", "TFLOP/s", points, _roofs(told, result))]


def _roofs(rows: Sequence[Row], result: Result) -> list[tuple[str, list[tuple[float, float]]]]:
    """One a precision, that with most time first; none where GPUs of several kinds are in one plane."""
    memory = result.roofline[0].memory_bytes_per_s
    if memory is None or len({one.gpu for one in result.roofline}) > 1:
        return []
    per_byte = memory / 1e12
    low, most = (pick(row["intensity"] for row in rows) for pick in (min, max))
    lines = []
    for precision, peak in dict.fromkeys((row["precision"], row["peak"]) for row in rows if row["peak"]):
        ridge = peak / per_byte
        start, end = min(low / 2, ridge / 4), max(most * 2, ridge * 4)
        name = f"{precision}: {peak:,.0f} TFLOP/s, memory: {per_byte:.3g} TB/s"
        lines.append((name, [(start, start * per_byte), (ridge, peak), (end, peak)]))
    return lines


def _grid(rows: Sequence[Row]) -> Grid:
    cells = [
        [
            row["operator"],
            row["sizes"],
            row["precision"],
            row["time"],
            row["count"],
            _three(_tflops(row)),
            None if row["roof"] is None else row["roof"] / max(row["time"], 1),
            row["bound"],
            readable_name(row["kernel"] or "", 60),
        ]
        for row in rows
    ]
    columns: list[tuple[str, Unit]] = [
        ("operator", "text"),
        ("sizes", "text"),
        ("precision", "text"),
        ("kernel time", "ns"),
        ("count", "count"),
        ("TFLOP/s", "text"),
        ("share of the roof", "share"),
        ("bound by", "text"),
        ("longest kernel", "text"),
    ]
    return Grid("Operators by time", columns, cells)


def _three(value: float) -> str:
    """A number with three digits, or all of its whole part."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
