"""`traceanalyzer rules`."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="The rules: what they look for, when they fire and what they recommend.", no_args_is_help=True)


@app.command("list")
def list_rules() -> None:
    """List every rule, in the order in which they claim time."""
    from traceanalyzer.engine.library import load_rules

    for rule in load_rules():
        typer.echo(f"{rule.id}  {rule.slug:<26} {rule.title}")


@app.command("show")
def show(rule_id: Annotated[str, typer.Argument(metavar="RULE", help="Id or slug, such as INP001.")]) -> None:
    """Explain one rule: why it exists, its thresholds, its false positives and its advice."""
    from traceanalyzer.engine.library import load_rules
    from traceanalyzer.engine.page import rule_page
    from traceanalyzer.errors import ConfigError

    rules = load_rules()
    found = next((r for r in rules if rule_id.lower() in (r.id.lower(), r.slug.lower())), None)
    if found is None:
        raise ConfigError(f"no rule '{rule_id}'; the rules are {', '.join(r.id for r in rules)}")
    typer.echo(rule_page(found), nl=False)
