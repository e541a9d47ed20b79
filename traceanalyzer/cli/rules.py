"""`traceanalyzer rules`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import Format, FormatOption, RuleFolders, configuration, write
from traceanalyzer.cli.values import QuickCommand, QuickGroup
from traceanalyzer.terminal import page, tell

if TYPE_CHECKING:
    from traceanalyzer.engine.rules.rule import Rule

app = typer.Typer(
    cls=QuickGroup,
    help="Explain the rules: what they look for and what they recommend; and check rules of your own.",
    no_args_is_help=True,
)


@app.command("list", cls=QuickCommand)
def list_rules(own: RuleFolders = None, format_: FormatOption = Format.TEXT) -> None:
    """List every rule, in the order in which they claim time.

    Yours among them: those of --rules and of [tool.traceanalyzer] in pyproject.toml.
    """
    from traceanalyzer.engine.rules.library import load_rules

    config = configuration(rules=own)
    off = config.disable
    if format_ is Format.JSON:
        entries = [_entry(rule) | {"switched_off": rule.id in off} for rule in load_rules(config.rules)]
        _show_json(entries, indent=2)
        return
    lines = [
        (rule.id, rule.slug, rule.family, "switched off" if rule.id in off else rule.status, rule.title)
        for rule in load_rules(config.rules)
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    _show("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _entry(rule: Rule) -> dict[str, object]:
    plain = ("id", "slug", "title", "family", "status", "category", "claims", "after", "file")
    return {name: getattr(rule, name) for name in plain}


@app.command("show", cls=QuickCommand)
def show(
    rule_id: Annotated[str, typer.Argument(metavar="RULE", help="Id or slug, such as INP001.")], own: RuleFolders = None
) -> None:
    """Explain one rule: its reason, thresholds, false positives, advice, and an example.

    Example: traceanalyzer rules show INP001
    """
    from difflib import get_close_matches

    from traceanalyzer.engine.rules.library import load_rules
    from traceanalyzer.engine.rules.page import rule_page
    from traceanalyzer.errors import ConfigError

    rules = load_rules(configuration(rules=own).rules)
    found = next((r for r in rules if rule_id.lower() in (r.id.lower(), r.slug.lower())), None)
    if found is None:
        names = {name.lower(): name for r in rules for name in (r.id, r.slug)}
        near = get_close_matches(rule_id.lower(), names, n=1)
        hint = f"did you mean {names[near[0]]}?" if near else f"the rules are {', '.join(r.id for r in rules)}"
        raise ConfigError(f"no rule '{rule_id}'; {hint}")
    _show(rule_page(found).splitlines())


RulePaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH...]", help="Rule files or folders of them; the shipped rules without one.", show_default=False
    ),
]


@app.command("lint", cls=QuickCommand)
def lint(paths: RulePaths = None) -> None:
    """Check rule files without a trace; exits with 1 when there is a problem.

    Every problem is one line: file:line:column: what is wrong.
    """
    from traceanalyzer.engine.rules.library import shipped_ids
    from traceanalyzer.engine.rules.lint import lint_rules

    problems = lint_rules(_files(paths), shipped_ids() if paths else {})
    _show(map(str, problems))
    tell(f"{len(problems)} problem(s)" if problems else "no problems")
    raise typer.Exit(int(bool(problems)))


@app.command("test", cls=QuickCommand)
def test(paths: RulePaths = None) -> None:
    """Run the tests inside rule files; exits with 1 when one fails."""
    from traceanalyzer.engine.rules.library import parse_rules
    from traceanalyzer.engine.rules.scenario import run_test

    tests = [(rule, test) for rule in parse_rules(_files(paths)) for test in rule.tests]
    failures = [(rule, test, wrong) for rule, test in tests if (wrong := run_test(rule, test))]
    _show(f"{rule.file}: {rule.id}, {test.name}: {wrong}" for rule, test, wrong in failures)
    tell(f"{len(tests) - len(failures)} passed, {len(failures)} failed")
    raise typer.Exit(int(bool(failures)))


@app.command("scenarios", cls=QuickCommand)
def scenarios() -> None:
    """List the small traces that ship with the rules, for the tests of your own: given: NAME."""
    from traceanalyzer.engine.rules.scenarios import named_scenarios

    found = named_scenarios()
    width = max(map(len, found))
    _show(f"{name:<{width}}  {scenario.about}" for name, scenario in found.items())


@app.command("schema", cls=QuickCommand)
def schema() -> None:
    """Write the JSON Schema of a rule file, with which an editor completes and checks as you type.

    Example: traceanalyzer rules schema > rule.schema.json
    """
    from traceanalyzer.engine.rules.rule_schema import rule_schema

    _show_json(rule_schema(), indent=1)


def _files(paths: list[Path] | None) -> list[tuple[str, str]]:
    from traceanalyzer.engine.rules.library import read_files, rule_files

    return [file for path in paths for file in read_files(path)] if paths else rule_files()


def _show(lines: Iterable[str]) -> None:
    write(page(lines).encode(), Path("-"))


def _show_json(document: object, indent: int) -> None:
    import json

    text = json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
    write(text.encode(errors="backslashreplace"), Path("-"))


COMMAND = Command("rules", app, order=90)
