"""Rule files on disk, and their rules in the order in which they may claim."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from traceanalyzer.engine.rules.lint import lint_rule, taken_id
from traceanalyzer.engine.rules.rule import Problem, Rule
from traceanalyzer.engine.rules.rulefile import read_rule
from traceanalyzer.engine.rules.scenarios import FILE as SCENARIOS
from traceanalyzer.engine.rules.yamlfile import MOST_BYTES
from traceanalyzer.errors import ConfigError
from traceanalyzer.extensions import offers
from traceanalyzer.files import read_settings
from traceanalyzer.model.kinds import EVIDENCE, kinds_of
from traceanalyzer.resources import data_folder

GROUP = "traceanalyzer.rules"
"""The group of entry points of packages that hold rules, as FAMILY/ID-slug.yaml."""
RULE_SUFFIXES = (".yaml", ".yml")
MOST_FILES = 1_000
# The narrower rule claims first; this breaks the ties that `after` leaves. Shipped rules that are not listed come last, by id.
CLAIM_ORDER = (
    *("INP001", "HST002", "REC002", "HST003", "LCH002", "MEM001", "MEM002", "SYN002", "SYN001"),
    *("MPI001", "MPI002"),
    *("CPY005", "CPY003", "CPY006", "CPY004", "CPY002", "CPY001"),
    *("COM005", "COM002", "COM003", "COM004", "COM007", "COM006", "COM001"),
    *("KRN002", "KRN001", "KRN003", "KRN008", "KRN009"),
    *("KRN004", "KRN006", "KRN005", "HST004", "HST005", "LCH001", "HST001", "GAP001"),
)


def rule_files(folder: Traversable | None = None) -> list[tuple[str, str]]:
    """(name such as `rules/input/INP001-data-loader-stall.yaml`, text) of every shipped rule, or of those in `folder`, sorted."""
    root = folder or data_folder("rules")
    return sorted(
        (f"{root.name}/{family.name}/{file.name}", file.read_text(encoding="utf-8"))
        for family in root.iterdir()
        if family.is_dir()
        for file in family.iterdir()
        if file.name.endswith(RULE_SUFFIXES)
    )


def shipped_ids() -> dict[str, str]:
    """Id -> file of every rule that comes with this program or with a kind of evidence."""
    return {rule.id: rule.file for rule in (*_shipped(tests=False), *_of_kinds())}


def read_files(path: Path) -> list[tuple[str, str]]:
    """(name, text) of one rule file, or of every rule file under a folder, sorted. Raises ConfigError when there is none."""
    if not path.is_dir():
        if not path.exists():
            raise ConfigError(f"{path}: no rule file and no folder of rule files (.yaml)")
        return [(str(path), read_settings(path, MOST_BYTES, pipes=True))]
    found = list(itertools.islice((p for p in path.rglob("*") if _is_rule(p) and not p.is_dir()), MOST_FILES + 1))
    if not found:
        raise ConfigError(f"{path}: no rule file and no folder of rule files (.yaml)")
    if len(found) > MOST_FILES:
        raise ConfigError(f"{path}: holds more than {MOST_FILES:,} rule files; name the folder that holds yours")
    return [(str(file), read_settings(file, MOST_BYTES)) for file in sorted(found)]


def load_rules(own: Sequence[Path] = (), tests: bool = True) -> list[Rule]:
    """The shipped rules, those of other packages and those of the user's files and folders, in claim order.

    `tests`: the shipped ones with their tests, which take as long to read as all the rest. Raises ConfigError that names the first
    mistakes of a wrong file: `file:line:column: what`.
    """
    shipped = [*_shipped(tests=tests), *_of_kinds()]
    # A file that is named twice, by itself and by its folder, is one file.
    given = {Path(name).resolve(): (name, text) for path in own for name, text in read_files(path)}
    users = parse_rules([*_of_packages(), *given.values()])
    _refuse([problem for rule in users for problem in lint_rule(rule, tests=False)])
    by_id = {rule.id: rule for rule in shipped}
    for rule in users:
        if taken := by_id.get(rule.id):
            _refuse([taken_id(rule, taken.file)])
    return claim_order([*shipped, *users], first={rule.id for rule in users})


@cache
def _shipped(*, tests: bool) -> tuple[Rule, ...]:
    rules = parse_rules(rule_files() if tests else map(_without_tests, rule_files()))
    return tuple(replace(rule, checked=True) for rule in rules)


def _without_tests(file: tuple[str, str]) -> tuple[str, str]:
    """A shipped rule without its tests, which are the last of it."""
    name, text = file
    rule, key, _ = text.partition("\ntests:")
    return name, f"{rule}{key} []\n"


@cache
def _of_kinds() -> tuple[Rule, ...]:
    """Those that kinds of evidence of other packages bring along."""
    folders = [folder for kind in kinds_of(EVIDENCE) if (folder := getattr(kind, "rules", None)) is not None]
    return tuple(rule for folder in folders for rule in parse_rules(rule_files(folder)))


@cache
def _of_packages() -> tuple[tuple[str, str], ...]:
    """(name, text) of the rule files in packages that say so by an entry point: they count as a user's own."""
    found: list[tuple[str, str]] = []
    for offer in offers(GROUP):
        package = offer.load()
        own = rule_files(files(package)) if hasattr(package, "__path__") else []
        if not own:
            raise ConfigError(
                f"{GROUP}: '{offer.name}' of {offer.package} is no package with rules in it (FAMILY/ID-slug.yaml)"
            )
        found += own
    return tuple(found)


def parse_rules(files: Iterable[tuple[str, str]]) -> list[Rule]:
    """The rules of files given as (name, text), in claim order. Raises ConfigError that names the first mistakes."""
    rules: list[Rule] = []
    problems: list[Problem] = []
    for name, text in files:
        rule, found = read_rule(text, name)
        problems += found
        rules += [rule] if rule else []
    _refuse(problems)
    return claim_order(rules)


def claim_order(rules: Iterable[Rule], first: Collection[str] = ()) -> list[Rule]:
    """The rules so that each comes after all that its `after` names; an id that is not loaded is no hindrance.

    `first` are the ids of rules that claim before all others they do not name: a user's rule knows one program, so it is narrower
    than any that is shipped. Raises ConfigError for a circle and for two rules with one id.
    """
    waiting = sorted(rules, key=lambda rule: (rule.id not in first, _place(rule.id), rule.id))
    _refuse_doubles(waiting)
    ordered: list[Rule] = []
    while waiting:
        ids = {rule.id for rule in waiting}
        ready = next((rule for rule in waiting if not ids.intersection(rule.after)), None)
        if ready is None:
            raise ConfigError(f"the 'after' of these rules forms a circle: {', '.join(sorted(ids))}")
        waiting.remove(ready)
        ordered.append(ready)
    return ordered


def _is_rule(path: Path) -> bool:
    return path.suffix in RULE_SUFFIXES and path.name != SCENARIOS


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise ConfigError("; ".join(str(problem) for problem in problems[:3]))


def _place(rule_id: str) -> int:
    return CLAIM_ORDER.index(rule_id) if rule_id in CLAIM_ORDER else len(CLAIM_ORDER)


def _refuse_doubles(rules: Sequence[Rule]) -> None:
    for before, rule in itertools.pairwise(rules):
        if before.id == rule.id:
            raise ConfigError(f"{rule.file} has the id {rule.id} of {before.file}")
