"""Kinds of files: each found, none named, no two alike, and every file claimed by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.places import FIXTURES
from tests.support.strangers import Program, install, install_package
from traceanalyzer.errors import ConfigError, InputError
from traceanalyzer.evidence.contract import Evidence
from traceanalyzer.ingest.registry import Registry, find_sources, registry

PACKAGE = Path(__file__).parents[1] / "traceanalyzer"
SAMPLES = {
    "kineto": FIXTURES / "kineto",
    "nsys": FIXTURES / "nsys",
    **{path.name: path for path in (FIXTURES / "evidence").iterdir() if path.is_dir()},
}
FOLDERS = {"memory": "memory_snapshot"}
"""Kinds whose samples lie in a folder of another name."""


def test_every_kind_is_found_by_its_folder():
    assert {"kineto", "nsys"} == {kind.name for kind in registry().formats if type(kind).__module__.startswith("tra")}
    assert all(kind.tables for kind in registry().evidence)


@pytest.mark.parametrize("folder", SAMPLES)
def test_every_sample_is_claimed_by_exactly_one(folder):
    found = find_sources([SAMPLES[folder]])
    assert found
    for source in found:
        claiming = [kind.name for kind in registry().kinds if kind.sniff(source)]
        assert len(claiming) == 1 or (folder == "kineto" and not claiming), source.path
        if SAMPLES[folder].parent.name == "evidence":
            assert "kineto" in claiming or claiming == [FOLDERS.get(folder, folder)], source.path
        else:
            assert source.kind == folder


@dataclass
class MadeUp(Evidence):
    name: str
    priority: int


NAMELESS = ("analysis", "budgets", "catalog", "cli", "doctor", "engine", "model", "render", "report", "result")
"""Rooms that know no format by its name."""
SPELLED = {
    # The field `format` of an input in the result: whether what recorded it records programs of one language alone.
    ("result/programs.py", "nsys"),
    # Commands to type, where there is no GPU work and so no format whose own advice would help.
    ("render/text.py", "nsys profile --trace=cuda,nvtx."),
    ("report/sections/trace/first.py", "With Nsight Systems: `nsys profile --trace=cuda,nvtx ./program`"),
}


def _texts(module: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    about = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in about:
            yield node.value


def test_no_format_is_named_but_in_its_own_folder():
    names = re.compile(rf"\b(?:{'|'.join(one.name for one in registry().formats)})\b")
    found = {
        (str(module.relative_to(PACKAGE)), text)
        for room in NAMELESS
        for module in (PACKAGE / room).rglob("*.py")
        for text in _texts(module)
        if names.search(text)
    }
    assert found == SPELLED


def test_equal_priorities_are_refused():
    with pytest.raises(ConfigError, match="'a' and 'b' have the same priority"):
        Registry([MadeUp("a", 3), MadeUp("b", 3)])
    with pytest.raises(ConfigError, match="two kinds of files are called 'a'"):
        Registry([MadeUp("a", 3), MadeUp("a", 4)])


def test_a_kind_that_is_not_installed_is_named():
    with pytest.raises(InputError, match="power_log"):
        Registry([]).named("power_log")


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ("power_log:MISSING", "cannot be loaded"),
        ("power_log:__name__", "is no kind of files"),
    ],
)
def test_a_package_that_is_broken_is_named_in_one_line(tmp_path, point, words):
    site = install(tmp_path / "site", "evidence")
    install_package(site, "strangers", {}, {"traceanalyzer.evidence": f"power_log = {point}"})
    (tmp_path / "trace.json").write_text('{"traceEvents": []}')
    done = Program(site, tmp_path).run("analyze", "trace.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr
    assert "power_log" in done.stderr
