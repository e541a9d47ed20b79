"""Whose doing a change is: the program's, the way it was recorded, the hardware's, or nobody's.

Each is told by a witness that is another one from the same night on: of the recording its format, its profiler and how its steps were
told; of the hardware the GPUs, the driver, the machine, and the clocks that a log of the GPUs shows. Clocks and neighbours that
nobody logged show in the kernels: the same ones, as often, all longer by one factor, while the host takes what it took. What has no
such witness is the program's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from statistics import median

from traceanalyzer.records import dataclass
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.lines import IDLE_PREFIX, LINES

REAL, METHOD, HARDWARE, NOISE = "real", "method", "hardware", "noise"
VERDICTS = (REAL, METHOD, HARDWARE, NOISE)
NEAR = 5
"""So many captures on each side of a change say what they were made with and on."""
_BESIDE = (0, -1, 1, -2, 2)
CLOCK, HELD_DOWN = "gpu_log.clock", "gpu_log.held_down"
"""The figures of a log of GPUs that say how fast these were."""
_HELD_MORE = 0.1
"""More of the time under load in which a GPU is held down by power or heat."""
_SAME_COUNT = 0.02
"""Kernels of a unit whose number differs by less are the same work."""
_SAME_KERNELS = 0.95
"""The share of kernels by name and number that both sides have, from which on the program is the same."""
_FEWEST_KERNELS = 3
_ONE_FACTOR = 0.25
"""All kernels grow by one factor where what each of them grows by differs from that by less than this share of it."""
_EXPLAINED = 0.5
"""A witness explains a change of which it makes so much at least."""

Told = Callable[[Entry], str | None]
Side = Sequence[Entry]


@dataclass(frozen=True)
class Verdict:
    """`kind` is one of VERDICTS, and `reason` says by which witness. `also` is what else is another one from that night on, and may
    have to do with it."""

    kind: str
    reason: str
    also: list[str]


def verdict_on(before: Side, after: Side) -> Verdict:
    """Whose doing it is that captures take another time from one night on; both sides in order of time, at least one capture each.

    Only the `NEAR` captures on each side of that night are looked at. What varies on one side already explains nothing. With some
    noise it may have been a night or two earlier or later: what has a witness there is told by that.
    """
    return _with_witness(before, after) or _without(before[-NEAR:], after[:NEAR])


def verdict_on_part(before: Side, after: Side, name: str, grown_ns: int) -> Verdict:
    """As `verdict_on`, where a line of the ledger, or what has no such `name`, takes so much more of a unit."""
    return _with_witness(before, after) or _part_without(before[-NEAR:], after[:NEAR], name, grown_ns)


def _with_witness(before: Side, after: Side) -> Verdict | None:
    entries = [*before, *after]
    places = [len(before) + by for by in _BESIDE if 0 < len(before) + by < len(entries)]
    found = (_witnessed(entries[max(at - NEAR, 0) : at], entries[at : at + NEAR]) for at in places)
    return next(filter(None, found), None)


def _witnessed(before: Side, after: Side) -> Verdict | None:
    method = [*_apart(before, after, _RECORDED), *_marked_elsewhere(before, after)]
    gpus = list(_apart(before, after, {"other GPUs": _gpus}))
    machine = [*_apart(before, after, {"another driver": _driver, "another host": _host}), *_clocks(before, after)]
    if method:
        return Verdict(METHOD, "; ".join(method), gpus + machine)
    if gpus or (machine and _is_same_program(before, after)):
        return Verdict(HARDWARE, "; ".join(gpus + machine), [])
    return Verdict(REAL, f"{_of_program(before, after)}; the kernels are others", machine) if machine else None


def _without(before: Side, after: Side) -> Verdict:
    factor = _one_factor(before, after)
    if factor and _explains_device(factor, before, after):
        return _other_pace(factor)
    return Verdict(REAL, _of_program(before, after), [])


def _part_without(before: Side, after: Side, name: str, grown_ns: int) -> Verdict:
    factor = _one_factor(before, after)
    kernels_ns = sum(ns for _, ns in _kernels(before).values())
    # What kernels take more, time in which they wait takes less.
    if factor and abs(exp(factor) - 1) * kernels_ns >= _EXPLAINED * abs(grown_ns):
        return _other_pace(factor)
    moved = {line: ns for line, ns in _moved(before, after).items() if line != name}
    other = min(moved, key=lambda line: moved[line] * grown_ns, default=None)
    if other is None or moved[other] * grown_ns > -_EXPLAINED * grown_ns**2:
        return Verdict(REAL, "nothing tells of another recording or other hardware", [])
    much = f"{format_duration(abs(round(moved[other])))} {'more' if moved[other] > 0 else 'less'}"
    return Verdict(REAL, f"with {much} of {_words(other)} from then on", [])


def _other_pace(factor: float) -> Verdict:
    much = f"{format_share(abs(exp(factor) - 1))} {'more' if factor > 0 else 'less'} time"
    why = "lower clocks, or a neighbour on the GPU" if factor > 0 else "higher clocks, or a neighbour that has left"
    return Verdict(HARDWARE, f"all kernels, the same ones and as often, take {much}, and the host does not: {why}", [])


def _apart(before: Side, after: Side, witnesses: Mapping[str, Told]) -> Iterator[str]:
    """What is one thing on all of one side and another on all of the other."""
    for what, told in witnesses.items():
        was, now = ({told(entry) for entry in side} for side in (before, after))
        if None not in was | now and not was & now:
            yield f"{what} ({_list(now)} instead of {_list(was)})"


def _list(names: set[str | None]) -> str:
    return ", ".join(sorted(name for name in names if name))


def _unit(entry: Entry) -> str | None:
    return f"{entry.unit} by {entry.method}" if entry.method else entry.unit


def _driver(entry: Entry) -> str | None:
    return entry.versions.get("NVIDIA driver") or entry.versions.get("CUDA driver")


def _host(entry: Entry) -> str | None:
    return entry.labels.get("host")


def _gpus(entry: Entry) -> str | None:
    return f"{entry.gpu_count} × {', '.join(entry.gpus)}" if entry.gpus else None


_RECORDED: Mapping[str, Told] = {
    "another format": lambda entry: entry.format,
    "another profiler": lambda entry: entry.versions.get("profiler"),
    "another unit of work": _unit,
    "another traceanalyzer": lambda entry: entry.tool,
}


def _marked_elsewhere(before: Side, after: Side) -> Iterator[str]:
    """A unit of other length with the same mix of kernels: twice as many of each, say, is no slower program."""
    was, now = _kernels(before), _kernels(after)
    shared = was.keys() & now.keys()
    if len(shared) < max(len(was), len(now)) or not shared:
        return
    factors = [log(now[name][0] / was[name][0]) for name in shared if was[name][0] and now[name][0]]
    middle = median(factors) if factors else 0.0
    if abs(middle) > log(1.25) and all(abs(factor - middle) < _SAME_COUNT for factor in factors):
        more = f"{exp(abs(middle)):.3g} times as {'many' if middle > 0 else 'few'}"
        yield f"a unit of work has {more} of each kernel: steps are marked at other places, or hold another number of passes"


def _clocks(before: Side, after: Side) -> Iterator[str]:
    """A log of the GPUs that explains the change."""
    was, now = _figure(before, CLOCK), _figure(after, CLOCK)
    if was and now and _explains(log(was / now), before, after):
        yield f"{'lower' if now < was else 'higher'} SM clocks under load ({now:.0f} MHz instead of {was:.0f} MHz)"
    held, holds = _figure(before, HELD_DOWN), _figure(after, HELD_DOWN)
    if (
        held is not None
        and holds is not None
        and (holds - held) * _grown(before, after) > _HELD_MORE * abs(_grown(before, after))
    ):
        yield f"held down by power or heat for {format_share(holds)} of the time under load instead of {format_share(held)}"


def _figure(side: Side, name: str) -> float | None:
    values = [entry.figures[name] for entry in side if name in entry.figures]
    return median(values) if len(values) == len(side) else None


def _grown(before: Side, after: Side) -> float:
    """The logarithm of what a unit's time has grown by."""
    was, now = (median(entry.unit_ns or 0 for entry in side) for side in (before, after))
    return log(now / was) if was and now else 0.0


def _explains(factor: float, before: Side, after: Side) -> bool:
    grown = _grown(before, after)
    return factor * grown > 0 and abs(factor) >= _EXPLAINED * abs(grown)


def _kernels(side: Side) -> dict[str, tuple[float, float]]:
    """(number, ns) per unit by kernel, the median of the captures, of those that all of them have."""
    found = [{one.name: one for one in entry.kernels} for entry in side]
    names = set.intersection(*(set(one) for one in found))
    return {name: (median(one[name].count for one in found), median(one[name].ns for one in found)) for name in names}


def _is_same_program(before: Side, after: Side) -> bool:
    """Whether a unit has the same kernels on both sides, as often. Where no kernels are known only their number tells."""
    launched = [[entry.launched for entry in side if entry.launched] for side in (before, after)]
    if all(launched) and abs(log(median(launched[0]) / median(launched[1]))) > _SAME_COUNT:
        return False
    was, now = _kernels(before), _kernels(after)
    pairs = [(was.get(name, (0.0, 0.0))[0], now.get(name, (0.0, 0.0))[0]) for name in sorted(was.keys() | now.keys())]
    return sum(map(min, pairs)) >= _SAME_KERNELS * sum(map(max, pairs))


def _one_factor(before: Side, after: Side) -> float | None:
    """The logarithm of the factor by which all kernels of the same program grow; None where they do not grow alike."""
    if not _is_same_program(before, after):
        return None
    was, now = _kernels(before), _kernels(after)
    shared = sorted(name for name in was.keys() & now.keys() if was[name][1] and now[name][1])
    total = sum(was[name][1] for name in shared)
    if len(shared) < _FEWEST_KERNELS or not total:
        return None
    factors = {name: log(now[name][1] / was[name][1]) for name in shared}
    middle = sum(factors[name] * was[name][1] for name in shared) / total
    apart = sum(abs(factors[name] - middle) * was[name][1] for name in shared) / total
    return middle if apart <= _ONE_FACTOR * abs(middle) else None


def _explains_device(factor: float, before: Side, after: Side) -> bool:
    """Whether the kernels' growth is most of the unit's, so that the host's part is what it was."""
    moved = _moved(before, after)
    host = sum(ns for line, ns in moved.items() if line.startswith(IDLE_PREFIX))
    grown = sum(moved.values())
    return factor * grown > 0 and abs(host) < (1 - _EXPLAINED) * abs(grown)


def _lines(side: Side) -> dict[str, float]:
    """Median ns per unit by ledger line: a noisy night beside a change is not part of it."""
    names = sorted({line for entry in side for line in entry.lines})
    return {name: median(entry.lines.get(name, 0) for entry in side) for name in names}


def _moved(before: Side, after: Side) -> dict[str, float]:
    """By how many ns per unit each line has grown."""
    was, now = _lines(before), _lines(after)
    return {name: now.get(name, 0.0) - was.get(name, 0.0) for name in sorted(was.keys() | now.keys())}


def _words(line: str) -> str:
    return LINES[line].words if line in LINES else line


def _of_program(before: Side, after: Side) -> str:
    """The ledger line that most of the change lies on, and the finding that grew with it."""
    was, now, moved = _lines(before), _lines(after), _moved(before, after)
    grown = sum(now.values()) - sum(was.values())
    most = max(moved, key=lambda name: moved[name] * grown, default=None)
    if most is None or moved[most] * grown <= 0:
        return "no line of the ledger shows why"
    was_ns, now_ns = (format_duration(ns) if (ns := lines.get(most, 0.0)) else "none" for lines in (was, now))
    said = f"{now_ns} of {_words(most)} instead of {was_ns}"
    return said if (found := _finding(before, after, grown)) is None else f"{said} ({found})"


def _finding(before: Side, after: Side, grown: float) -> str | None:
    """The rule whose findings moved most in the direction of the change."""
    was, now = _findings(before), _findings(after)
    moved = {rule: now.get(rule, 0.0) - was.get(rule, 0.0) for rule in sorted(was.keys() | now.keys())}
    most = max(moved, key=lambda rule: moved[rule] * grown, default=None)
    if most is None or moved[most] * grown < _EXPLAINED * grown * grown:
        return None
    titles = {one.rule: one.title for entry in (*before, *after) for one in entry.findings}
    return f"{most} {titles[most]}"


def _findings(side: Side) -> dict[str, float]:
    """Median ns per unit by rule."""
    rules = sorted({one.rule for entry in side for one in entry.findings})
    return {
        rule: median(sum(one.ns or 0 for one in entry.findings if one.rule == rule) for entry in side) for rule in rules
    }
