"""A check of budgets as plain text: the verdict, then what is broken, warned about, not judged, and kept."""

from __future__ import annotations

from traceanalyzer.render.comparing.check_parts import sections, several, where
from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.captures.check import Check, Held


def render_check(check: Check) -> str:
    """Ends in a newline."""
    lines = wrap(check.headline, "", "")
    lines += [""]
    for capture in check.captures:
        lines += wrap(f"{capture.place}: {capture.headline}", "capture   ", "          ")
        lines += [line for why in capture.damage for line in wrap(f"damaged: {why}", "          ", "          ")]
    if check.baseline:
        lines += wrap(check.baseline, "baseline  ", "          ")
    lines += [line for note in check.notes for line in wrap(note, "note      ", "          ")]
    for title, held in sections(check):
        lines += ["", title.upper()]
        for one in held:
            lines += _brief(one) if title == "kept" or one.outcome == "off" else _full(check, one)
    return page(lines)


def _title(one: Held) -> str:
    return f"{one.text} [warn]" if one.level == "warn" else one.text


def _brief(one: Held) -> list[str]:
    text = f"{_title(one)}: {one.actual or one.reason}"
    note = f" ({one.reason})" if one.reason and one.actual else ""
    return wrap(text + note, "  ", "      ")


def _full(check: Check, one: Held) -> list[str]:
    lines = wrap(_title(one), "  ", "  ")
    rows = [
        ("expected", one.expected),
        ("found", one.actual),
        ("where", where(check, one)),
        ("captures", "; ".join(several(check, one))),
        ("because", one.message),
        ("reason", one.reason),
        ("show", one.show),
        ("then open", one.look_at),
        ("set in", one.place),
    ]
    for name, words in rows:
        if words and name == "show":
            lines.append(f"      {name:<10}{words}")  # A command is never cut.
        elif words:
            lines += wrap(words, f"      {name:<10}", " " * 16)
    return lines
