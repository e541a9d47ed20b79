"""A comparison as Markdown, for a comment on a pull request or a step summary."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.names import readable_name
from traceanalyzer.render import md
from traceanalyzer.result.comparing.comparison import Change, Comparison, FigureChange, ProblemChange, Side
from traceanalyzer.result.comparing.figures import figure_rows
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
    side_words,
    signed_duration,
    unit_words,
)
from traceanalyzer.units import format_count
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE
from traceanalyzer.vocabulary.lines import line_words

MOST = 20
"""So many kernels, operators or collectives are named in each direction; they are folded away."""
LONGEST_NAME = 80
SIGNS = {"faster": "🟢", "slower": "🔴", "no_change": "⚪", COULD_NOT_JUDGE: "⚠️"}
"""Beside the words, never instead of them."""
OPEN_STATES = ("fixed", "new", "worse")
"""Findings that are not folded away."""


def render_comparison_markdown(comparison: Comparison, title: str | None = None) -> str:
    """As the text, with tables; details are folded away. Below `md.LIMIT` bytes of UTF-8, ending in a newline."""
    sign = SIGNS.get(comparison.outcome, "")
    blocks = [f"### {md.text(title)}"] if title else []
    blocks.append(f"{sign} **{md.text(comparison.headline)}**")
    if comparison.reason:
        blocks += advice(comparison)
    blocks += [_sides(comparison), *_notes(comparison)]
    if comparison.step is not None:
        blocks += _ledger(comparison, comparison.step)
    blocks += _evidence(comparison.figures)
    blocks += _findings(comparison.problems)
    if comparison.step is not None:
        for name, changes in (
            ("Critical path", comparison.path),
            ("Kernels", comparison.kernels),
            ("Kinds of kernels", comparison.families),
            ("Operators", comparison.operators),
            ("Collectives", comparison.collectives),
        ):
            blocks += _section(name, movers(changes, MOST), is_code=name not in ("Kinds of kernels", "Critical path"))
    blocks += _unchanged(comparison.problems)
    blocks.append(f"<sub>{md.text(_made_by(comparison))}</sub>")
    return md.clip_blocks(blocks, rest="more sections are in the comparison as text, JSON and HTML")


def _made_by(comparison: Comparison) -> str:
    """All times are of one unit of work; how sure they are; who says so."""
    tool = f"{comparison.tool.get('name', '')} {comparison.tool.get('version', '')}".strip()
    if comparison.step is None:
        return f"{tool}."
    return f"Times are per unit of work ({unit_words(comparison)}). {noise_words(comparison)}. {tool}."


def _sides(comparison: Comparison) -> str:
    noise = comparison.noise
    rows = [_side("BASE", comparison.base, noise.base), _side("NEW", comparison.new, noise.new)]
    return md.table(("", "capture", "what", "verdict"), rows, (md.LEFT,) * 4)


def _side(name: str, side: Side, spread: float | None) -> list[str]:
    return [f"**{name}**", md.code(side.name), md.text(", ".join(side_words(side, spread))), md.text(side.headline)]


def _notes(comparison: Comparison) -> list[str]:
    lines = [
        f"- {'**refused** ' if note.refuses else ''}{md.text(f'{about_words(note)}: {note.message}')}"
        for note in comparison.notes
    ]
    return ["\n".join(lines)] if lines else []


def _ledger(comparison: Comparison, step: Change) -> list[str]:
    found = ledger_lines(comparison)
    rows = [_row(md.text(line_words(line.name)), line) for line in found.shown]
    rows += [_row(rest.name, rest)] if (rest := found.rest) else []
    rows.append([f"**{cell}**" if cell else "" for cell in _row(unit_words(comparison), step)])
    return ["#### Where the time went", _changes("per unit of work", rows)]


def _section(title: str, found: Moved, is_code: bool) -> list[str]:
    if not (found.slower or found.faster):
        return []
    spell = md.code if is_code else md.text
    rows = [_row(spell(readable_name(one.name, LONGEST_NAME)), one) for one in (*found.slower, *found.faster)]
    sums = [f"{signed_duration(found.slower_ns)} slower or new"] if found.slower else []
    sums += [f"{signed_duration(found.faster_ns)} faster or gone"] if found.faster else []
    left = found.left_words()
    return [md.details(f"{title}: {', '.join(sums)}", _changes("", rows), *([left] if left else []))]


def _changes(first: str, rows: Sequence[Sequence[str]]) -> str:
    right = (md.RIGHT,) * 3
    return md.table((first, "BASE", "NEW", "change", ""), rows, (md.LEFT, *right, md.LEFT))


def _row(label: str, change: Change) -> list[str]:
    said = [relative_words(change), *([count] if (count := count_words(change)) else [])]
    times = duration_or_none(change.base_ns), duration_or_none(change.new_ns), signed_duration(change.change_ns)
    return [label, *map(_figures, (*times, ", ".join(said)))]


def _figures(words: str) -> str:
    """Our own words, of which only "<0.1%" could be markup."""
    return words.replace("<", "&lt;").replace(">", "&gt;")


def _findings(problems: Sequence[ProblemChange]) -> list[str]:
    """What was fixed and what is new or worse; all else is folded away further down."""
    groups = by_state(problems)
    lines = [_finding(state, one) for state in OPEN_STATES for one in groups.get(state, [])]
    return ["#### Findings", "\n".join(lines)] if lines else []


def _evidence(figures: Sequence[FigureChange]) -> list[str]:
    """The figures of the roofline and of evidence, which have units of their own."""
    rows = [[md.text(one.about), *map(_figures, (one.base, one.new, one.change))] for one in figure_rows(figures)]
    if not rows:
        return []
    return ["#### Figures", md.table(("", "BASE", "NEW", "change"), rows, (md.LEFT, *(md.RIGHT,) * 3))]


def _unchanged(problems: Sequence[ProblemChange]) -> list[str]:
    groups = by_state(problems)
    same = len(groups.get("same", []))
    lines = [_finding(state, one) for state in groups if state not in (*OPEN_STATES, "same") for one in groups[state]]
    if not lines:
        return [f"{format_count(same)} finding{'s' if same > 1 else ''} did not change."] if same else []
    if same:
        lines.append(f"- {format_count(same)} that did not change")
    return [md.details(f"Other findings ({format_count(len(problems) - _open(groups))})", "\n".join(lines))]


def _open(groups: dict[str, list[ProblemChange]]) -> int:
    return sum(len(groups.get(state, [])) for state in OPEN_STATES)


def _finding(state: str, problem: ProblemChange) -> str:
    said = f"{problem.title} ({problem.rule}): {problem_words(problem)}."
    more = f" {md.text(problem.message)}" if state in ("new", "worse") else ""
    return f"- **{STATE_WORDS.get(state, state)}** {md.text(said)}{more}"
