"""A check of budgets as workflow commands of GitHub Actions: what is broken as errors, the rest that does not pass as warnings."""

from __future__ import annotations

from traceanalyzer.render.comparing.check_parts import several, where
from traceanalyzer.render.github import MOST, command
from traceanalyzer.result.captures.check import Check, Held
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

NAME = "traceanalyzer check"


def render_check(check: Check) -> str:
    """The verdict as a notice or an error, then one command an assertion. Ends in a newline."""
    lines = [command("notice" if check.outcome == "passed" else "error", check.headline, NAME)]
    errors = [one for one in check.assertions if one.level == "error" and one.outcome == "failed"]
    errors += [one for one in check.assertions if one.level == "error" and one.outcome == COULD_NOT_JUDGE]
    warnings = [one for one in check.assertions if one.level == "warn" and one.outcome in ("failed", COULD_NOT_JUDGE)]
    # The verdict is one of the errors.
    lines += [
        command("warning", f"damaged: {why}", one.place)
        for one in check.captures
        for why in one.damage[:1]
        if not one.unjudged
    ]
    lines += [command("notice", note, NAME) for note in check.notes]
    lines += _commands(check, "error", errors, MOST - 1) + _commands(check, "warning", warnings, MOST)
    return "\n".join(lines) + "\n"


def _commands(check: Check, kind: str, held: list[Held], most: int) -> list[str]:
    return [command(kind, _message(check, one), one.text) for one in held[:most]]


def _message(check: Check, one: Held) -> str:
    found = f"expected {one.expected}, found {one.actual}" if one.actual else f"could not judge: {one.reason}"
    place = f" ({where(check, one)})" if where(check, one) else ""
    rest = [one.message, "; ".join(several(check, one)), one.show and f"show: {one.show}", one.look_at]
    return "\n".join([f"{found}{place}", *(words for words in rest if words)])
