"""The wheel, built offline and unpacked elsewhere: rules and templates travel with it."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kineto import KinetoTrace

pytest.importorskip("hatchling")
pytest.importorskip("pip")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the installed wheel in it, and nothing of the checkout."""
    built, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("target")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    offline = os.environ | {"PIP_NO_INDEX": "1"}
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), str(ROOT)]
    subprocess.run(build, check=True, env=offline)
    (wheel,) = built.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True, env=offline)
    return target


def run(installed: Path, folder: Path, *args: str) -> str:
    """Standard output of the installed command line. `-S` keeps out the editable install of the checkout."""
    path = os.pathsep.join([str(installed), *site.getsitepackages()])
    code = "import runpy, traceanalyzer; print(traceanalyzer.__file__); runpy.run_module('traceanalyzer', run_name='__main__')"
    command = [sys.executable, "-S", "-c", code, *args]
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place, _, rest = done.stdout.partition("\n")
    assert Path(place).parent == installed / "traceanalyzer"
    return rest


def test_rules_and_report_work_away_from_the_checkout(installed, tmp_path):
    listed = run(installed, tmp_path, "rules", "list")
    assert len(listed.splitlines()) == len(list((ROOT / "rules").glob("*/*.yaml")))
    assert "Fires when" in run(installed, tmp_path, "rules", "show", "INP001")
    trace = KinetoTrace().op(10, 20, launch=(1, 3)).op(30, 50, launch=(4, 6))
    trace.write(tmp_path / "t.json")
    run(installed, tmp_path, "report", "t.json", "-o", "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_the_wheel_holds_the_package_and_its_data_only(installed):
    assert (installed / "traceanalyzer" / "_data" / "templates" / "page.html.j2").is_file()
    names = {p.name.partition("-")[0] for p in installed.iterdir()}
    assert names <= {"traceanalyzer", "bin"}
    assert not [p for p in installed.rglob("*") if p.name.startswith("test_")]
