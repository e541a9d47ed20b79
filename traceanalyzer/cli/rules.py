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


RulePaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH...]", help="Rule files or folders of them; the shipped rules without one.", show_default=False
    ),
]


@app.command("lint")
def lint(paths: RulePaths = None) -> None:
    """Check rule files without a trace; exits with 1 when there is a problem.

    Every problem is one line: file:line:column: what is wrong.
    """
    from traceanalyzer.engine.lint import lint_rules

    problems = lint_rules(_files(paths))
    _show("".join(f"{problem}\n" for problem in problems))
    typer.echo(f"{len(problems)} problem(s)" if problems else "no problems", err=True)
    raise typer.Exit(int(bool(problems)))


@app.command("test")
def test(paths: RulePaths = None) -> None:
    """Run the tests inside rule files; exits with 1 when one fails."""
    from traceanalyzer.engine.library import parse_rules
    from traceanalyzer.engine.scenario import run_test

    tests = [(rule, test) for rule in parse_rules(_files(paths)) for test in rule.tests]
    failures = [(rule, test, wrong) for rule, test in tests if (wrong := run_test(rule, test))]
    _show("".join(f"{rule.file}: {rule.id}, {test.name}: {wrong}\n" for rule, test, wrong in failures))
    typer.echo(f"{len(tests) - len(failures)} passed, {len(failures)} failed", err=True)
    raise typer.Exit(int(bool(failures)))


def _files(paths: list[Path] | None) -> list[tuple[str, str]]:
    from traceanalyzer.engine.library import read_files, rule_files

    return [file for path in paths for file in read_files(path)] if paths else rule_files()


def _show(text: str) -> None:
    write(text.encode(), Path("-"))
