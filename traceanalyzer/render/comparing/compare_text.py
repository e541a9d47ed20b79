"""A comparison as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.names import readable_name
from traceanalyzer.render.lines import WIDTH, page, wrap
from traceanalyzer.result.comparing.comparison import Change, Comparison, ProblemChange, Side
from traceanalyzer.result.comparing.figures import figure_words
from traceanalyzer.result.comparing.words import (
    STATE_WORDS,
    Moved,
    about_words,
    advice,
    by_state,
    count_words,
    duration_or_none,
    ledger_lines,
    movers,
    noise_words,
    problem_words,
    relative_words,
    short_words,
    side_words,
    signed_duration,
    unit_words,
)
from traceanalyzer.units import format_count
from traceanalyzer.vocabulary.lines import line_words

MOST = 8
"""So many kernels, operators or collectives are named in each direction."""
LABEL, TITLE, SHORT = 30, 18, 8
WIDTHS = (9, 9, 10)


def render_comparison(comparison: Comparison) -> str:
    """Headline, both sides, notes, where the time went, what got slower and faster, findings. Ends in a newline."""
    lines = wrap(comparison.headline, "", "")
    if comparison.reason:
        lines += [line for text in advice(comparison) for line in wrap(text, "→ ", "  ")]
    lines += ["", *_sides(comparison), *_notes(comparison)]
    if comparison.step is not None:
        lines += _ledger(comparison, comparison.step)
        lines += _table("CRITICAL PATH", movers(comparison.path, MOST))
        lines += _table("KINDS OF KERNELS", movers(comparison.families, MOST))
        lines += _table("KERNELS", movers(comparison.kernels, MOST))
        lines += _table("OPERATORS", movers(comparison.operators, MOST))
        lines += _table("COLLECTIVES", movers(comparison.collectives, MOST))
    if comparison.figures:
        lines += ["", "FIGURES"]
        lines += [
            line for one in comparison.figures for line in wrap(f"{one.about}: {figure_words(one)}", "  ", "    ")
        ]
    lines += _findings(comparison.problems)
    return page(lines)


def _sides(comparison: Comparison) -> list[str]:
    base, new, noise = comparison.base, comparison.new, comparison.noise
    lines = [*_side("BASE", base, noise.base), *_side("NEW", new, noise.new)]
    return (
        [*lines, *wrap(f"{noise_words(comparison)}.", "        ", "        ")] if comparison.step is not None else lines
    )


def _side(name: str, side: Side, spread: float | None) -> list[str]:
    lines = [f"{name:<8}{side.name}", *wrap(", ".join(side_words(side, spread)), "        ", "        ")]
    return [*lines, *wrap(side.headline, "        ", "        ")] if side.headline else lines


def _notes(comparison: Comparison) -> list[str]:
    lines = [
        line
        for note in comparison.notes
        for line in wrap(f"{about_words(note)}: {note.message}", "refused " if note.refuses else "note    ", "        ")
    ]
    return ["", *lines] if lines else []


def _ledger(comparison: Comparison, step: Change) -> list[str]:
    """Ledger lines and their sum, which is the step."""
    found = ledger_lines(comparison)
    lines = ["", _row("WHERE THE TIME WENT", ("BASE", "NEW", "change"), unit_words(comparison))]
    lines += [_line(line_words(line.name), line) for line in found.shown]
    lines += [_line(rest.name, rest)] if (rest := found.rest) else []
    return [*lines, _line(f"= {unit_words(comparison)}", step)]


def _line(label: str, change: Change) -> str:
    return _row(f"  {label}", _times(change), relative_words(change))


def _row(label: str, times: tuple[str, str, str], said: str) -> str:
    return f"{label:<{LABEL}}{_columns(times)}  {said}".rstrip()


def _table(title: str, found: Moved) -> list[str]:
    """What got slower, then what got faster; names stand last, where there is room. One line where nothing moved."""
    if not (found.slower or found.faster):
        return ["", f"{title}: no change in any of {format_count(found.same)}"] if found.same else []
    lines = ["", f"{title:<{TITLE}}{_columns(('BASE', 'NEW', 'change'))}"]
    for way, changes, total in (
        ("slower or new", found.slower, found.slower_ns),
        ("faster or gone", found.faster, found.faster_ns),
    ):
        if changes:
            lines.append(f"  {f'{way} in all':<{TITLE - 2}}{_columns(('', '', signed_duration(total)))}")
            lines += map(_named, changes)
    if left := found.left_words():
        lines.append(f"  {left}")
    return lines


def _named(change: Change) -> str:
    """Times first, so that as much of the name as possible fits the line."""
    before = f"{'':<{TITLE}}{_columns(_times(change))}  {short_words(change):<{SHORT}}"
    count = count_words(change)
    after = f", {count}" if count else ""
    return f"{before}{readable_name(change.name, WIDTH - len(before) - len(after))}{after}"


def _times(change: Change) -> tuple[str, str, str]:
    return duration_or_none(change.base_ns), duration_or_none(change.new_ns), signed_duration(change.change_ns)


def _columns(times: tuple[str, str, str]) -> str:
    return "".join(f"{time:>{width}}" for time, width in zip(times, WIDTHS, strict=True))


def _findings(problems: Sequence[ProblemChange]) -> list[str]:
    groups = by_state(problems)
    same = len(groups.pop("same", []))
    if not groups and not same:
        return []
    lines = ["", "FINDINGS" if groups else f"FINDINGS: no change in any of {same}"]
    for state, group in groups.items():
        lines.append(f"  {STATE_WORDS.get(state, state)}")
        for one in group:
            lines += wrap(f"{one.rule} {one.title}: {problem_words(one)}.", "  · ", "    ")
            if state in ("new", "worse"):
                lines += wrap(one.message, "    ", "    ")
    return [*lines, f"  and {same} that did not change"] if groups and same else lines
