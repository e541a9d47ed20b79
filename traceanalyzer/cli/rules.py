"""`traceanalyzer rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import write

app = typer.Typer(help="Explain the rules: what they look for and what they recommend.", no_args_is_help=True)


@app.command("list")
def list_rules() -> None:
    """List every rule, in the order in which they claim time."""
    from traceanalyzer.engine.library import load_rules

    rules = load_rules()
    width = max((len(rule.slug) for rule in rules), default=0)
    _show("".join(f"{rule.id}  {rule.slug:<{width}}  {rule.title}\n" for rule in rules))


@app.command("show")
def show(rule_id: Annotated[str, typer.Argument(metavar="RULE", help="Id or slug, such as INP001.")]) -> None:
    """Explain one rule: its reason, thresholds, false positives, advice.

    Example: traceanalyzer rules show INP001
    """
    from difflib import get_close_matches

    from traceanalyzer.engine.library import load_rules
    from traceanalyzer.engine.page import rule_page
    from traceanalyzer.errors import ConfigError

    rules = load_rules()
    found = next((r for r in rules if rule_id.lower() in (r.id.lower(), r.slug.lower())), None)
    if found is None:
        names = {name.lower(): name for r in rules for name in (r.id, r.slug)}
        near = get_close_matches(rule_id.lower(), names, n=1)
        hint = f"did you mean {names[near[0]]}?" if near else f"the rules are {', '.join(r.id for r in rules)}"
        raise ConfigError(f"no rule '{rule_id}'; {hint}")
    _show(rule_page(found))


def _show(text: str) -> None:
    write(text.encode(), Path("-"))
