"""The page's scripts that touch no page, by the tests in tests/scripts; and what CI does where something is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.needed import find_node, skip_without

NODE = find_node()
TESTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.test.mjs"))


@skip_without(NODE, "node")
def test_scripts_do_what_their_tests_say() -> None:
    assert NODE, "node is not installed"
    done = subprocess.run([NODE, "--test", *map(str, TESTS)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("there", "ci", "skips"), [("", "", True), ("/bin/it", "", False), ("", "true", False)])
def test_in_ci_nothing_that_is_missing_is_skipped(
    monkeypatch: pytest.MonkeyPatch, there: str, ci: str, skips: bool
) -> None:
    monkeypatch.setenv("CI", ci)
    assert skip_without(there, "it").args == (skips,)
