"""What the Action and the workflows use of others is named to the byte, and is not behind what the package declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.support.action import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "ci/requirements.txt").read_text()
PINS = [(Requirement(line.partition("\\")[0].strip()), line) for line in re.findall(r"^\w.*(?:\n .*)*", LOCK, re.M)]
WITH_ACTIONS = ("action.yml", ".github/workflows/ci.yml", "docs/ci.md", "README.md")


@pytest.mark.parametrize("needed", [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]])
def test_what_the_package_needs_is_pinned(needed):
    wanted = Requirement(needed)
    found = [pin for pin, _ in PINS if _plain(pin.name) == _plain(wanted.name)]
    assert found, f"{needed}: make lock"
    for pin in found:
        (version,) = pin.specifier
        assert version.operator == "==" and wanted.specifier.contains(version.version), f"{needed}: make lock"


def test_what_the_package_imports_is_declared():
    optional = PROJECT["project"]["optional-dependencies"]
    needed = [*PROJECT["project"]["dependencies"], *optional["cluster"], *optional["ncu"]]
    declared = {Requirement(one).name for one in needed}
    names = {found for name in declared for found in (name, name.replace("-", "_"), name.partition(".")[0])}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "traceanalyzer").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {node.module.partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {one.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for one in node.names}
    # PyYAML is imported as yaml; compression is Python's from 3.14 on; who calls for aiohttp is fsspec, which has it.
    known = sys.stdlib_module_names | names | {"traceanalyzer", "yaml", "compression", "aiohttp"}
    assert imported - known == set()


def test_every_pin_has_hashes():
    assert len(PINS) > 20 and all("--hash=sha256:" in text for _, text in PINS)


@pytest.mark.parametrize("file", WITH_ACTIONS)
def test_actions_of_others_are_named_by_their_commit(file):
    if not (ROOT / file).exists():
        pytest.skip("a source distribution holds no workflows")
    for used in re.findall(r"uses: (\S+@.*)", (ROOT / file).read_text()):
        assert used.startswith("OWNER/") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used


def test_workflows_have_the_least_permissions():
    path = ROOT / ".github/workflows/ci.yml"
    if not path.exists():
        pytest.skip("a source distribution holds no workflows")
    text = path.read_text()
    assert re.findall(r"^permissions:\n((?:  .*\n)+)", text, re.M) == ["  contents: read\n"]
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    assert not any("${{" in line for line in re.findall(r"run: .*", text))


def test_what_the_threat_model_leans_on_is_there():
    text = (ROOT / "SECURITY.md").read_text()
    named = {path for path in re.findall(r"`([\w./-]+)`", text) if path.startswith(("tests/", "ci/", "docs/"))}
    assert len(named) > 10 and [path for path in sorted(named) if not (ROOT / path).exists()] == []


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
