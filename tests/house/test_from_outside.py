"""What a package of somebody else adds to the program: a section of the page, an output and a command, by entry points alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.places import FIXTURES
from tests.support.strangers import Program, install


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return install(tmp_path / "site", "section", "output", "command")


@pytest.fixture
def trace() -> Path:
    return FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz"


def run(site: Path, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = Program(site, site).run(*arguments)
    assert done.returncode == code, done.stderr
    return done


def test_a_section_of_the_page(site: Path, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(site, "report", trace, "-o", page)
    text = page.read_text()
    assert '<a href="#weather">Weather</a>' in text
    assert text.index('id="findings"') < text.index('<section id="weather">') < text.index('id="timeline"')
    assert "#weather { color: red }" in text and 'document.title += "!"' in text
    assert "<b>" + "0 findings" not in text and "&lt;b&gt;" in text
    assert text.index("class Charts") < text.index('document.title += "!"')


def test_outputs(site: Path, trace: Path, tmp_path: Path) -> None:
    shown = run(site, "analyze", trace, "--format", "haiku", "--also", f"haiku={tmp_path / 'two'}").stdout
    assert shown == (tmp_path / "two").read_text() == f"Path: {trace.name}\n"  # published: without the folder
    assert run(site, "check", trace, "--assert", "idle_share <= 100%", "-f", "haiku").stdout == "kept\n"
    assert "haiku" in run(site, "analyze", "--help").stdout
    refused = run(site, "analyze", trace, "--also", "limerick=x", code=2).stderr
    assert "there is no format 'limerick'; choose one of text, json" in refused and "haiku" in refused


def test_a_command(site: Path) -> None:
    assert run(site, "greet", "run.json").stdout == "hello run.json\n"
    lines = run(site, "--help").stdout.splitlines()
    assert any("greet" in line and "Say hello to a trace." in line for line in lines)
    heavy = "import sys; from traceanalyzer.cli.commands import command_line; sys.argv = ['x', 'analyze', '-h']; command_line()"
    code = f"{heavy}; print([one for one in sys.modules if one.startswith('strangers')], file=sys.stderr)"
    done = Program(site, site).python("-c", code)
    assert done.stderr.endswith("[]\n")  # nothing of theirs is imported for a command of ours


def test_what_cannot_be_loaded_names_its_package(site: Path, trace: Path, tmp_path: Path) -> None:
    for file in ("weather/__init__.py", "haiku.py", "greet.py"):
        (site / "strangers" / file).write_text("raise RuntimeError('broken')")
    said = run(site, "report", trace, "-o", tmp_path / "page.html", code=2).stderr
    assert "'weather' of strangers cannot be loaded (RuntimeError: broken); update or uninstall strangers" in said
    assert "'haiku' of strangers cannot be loaded" in run(site, "analyze", trace, "-f", "haiku", code=2).stderr
    assert "'greet' of strangers cannot be loaded" in run(site, "greet", "x", code=2).stderr
    shown = run(site, "--help")
    assert "left out:" in shown.stderr and "analyze" in shown.stdout
    assert run(site, "analyze", trace).stdout
