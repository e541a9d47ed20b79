"""A check of budgets as Markdown, for a step summary or a comment."""

from __future__ import annotations

from traceanalyzer.render import md
from traceanalyzer.render.comparing.check_parts import sections, several, where
from traceanalyzer.result.captures.check import Check, Held

_MARKS = {
    "broken": "❌ broken",
    "warned": "⚠️ warned",
    "could not judge": "❔ not judged",
    "kept": "✅ kept",
    "off": "off",
}


def render_check(check: Check) -> str:
    """The verdict, a table of all assertions, and how to see what was found. Ends in a newline."""
    found = [(title, one) for title, held in sections(check) for one in held]
    rows = [
        [
            _MARKS[title],
            md.code(one.text),
            md.text(one.expected),
            md.text(one.actual or one.reason or ""),
            md.text(where(check, one)),
        ]
        for title, one in found
    ]
    captures = [
        f"- {md.code(one.place)}: {md.text(one.headline)}" + "".join(f" Damaged: {md.text(why)}." for why in one.damage)
        for one in check.captures
    ]
    against = [f"Baseline: {md.code(check.baseline)}"] if check.baseline else []
    against += ["\n".join(f"- {md.text(note)}" for note in check.notes)] if check.notes else []
    table = md.table(["", "budget", "expected", "found", "where"], rows, [md.LEFT] * 5)
    details = [_details(check, one) for title, one in found if title not in ("kept", "off")]
    return md.clip_blocks([f"### {md.text(check.headline)}", "\n".join(captures), *against, table, *details])


def _details(check: Check, one: Held) -> str:
    lines = [md.text(words) for words in (one.message, one.reason, "; ".join(several(check, one))) if words]
    lines += [f"Show: {md.code(one.show)}"] if one.show else []
    lines += [f"Then open {md.code(one.look_at)}"] if one.look_at else []
    return md.details(md.code(one.text), *lines)
