"""`traceanalyzer history` and `--history` as a new user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.places import FIXTURES
from tests.watch.scene import trace
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.result.history.entry import Entry

TRACE = FIXTURES / "kineto" / "readback_logits.fixed.pt.trace.json.xz"
BUDGET = ["--assert", "step.mean <= baseline * 1.05"]
NIGHTS = 8
MOVED = 5
"""The night from which on the host takes longer."""


@pytest.fixture(autouse=True)
def _without_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No labels of the pipeline that runs the tests."""
    for name in (
        "GITHUB_SHA",
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "GITHUB_REPOSITORY",
        "JOB_NAME",
        "SLURM_JOB_NAME",
        "NODE_NAME",
    ):
        monkeypatch.delenv(name, raising=False)


def night(folder: Path, number: int, host_us: float) -> Path:
    return trace(number, host_us).write(folder / f"night{number}.json")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One series, in which a step takes longer from a night on."""
    from traceanalyzer.analysis.captures import opened_run
    from traceanalyzer.config import Config
    from traceanalyzer.history.adding import labelled
    from traceanalyzer.ingest.how import How

    folder = tmp_path_factory.mktemp("history")
    shelf = Shelf(folder / "history")
    for number in range(NIGHTS):
        path = night(folder, number, 300 + number % 2 + number / 10 + 200 * (number >= MOVED))
        with opened_run(path, Config(), How(jobs=1)) as found:
            labels = [f"commit=c{number}", "branch=main", "config=small", "host=node1", "gpu_hours=2"]
            for entry, capture in labelled(found, labels):
                assert shelf.add(entry, capture)
    return shelf.place  # type: ignore[return-value]


def entries(place: Path) -> list[Entry]:
    return Shelf(place).read().entries


def test_adding_says_what_was_added(tmp_path: Path, capsysbinary) -> None:
    place = tmp_path / "history"
    code, out, err = run(
        capsysbinary, "history", "add", TRACE, "--to", place, "--label", "commit=c1", "--report", "https://x.org/r"
    )
    assert (code, out, err) == (0, "", f"{TRACE.name}: added\n")
    (entry,) = entries(place)
    assert (entry.labels["commit"], entry.report) == ("c1", "https://x.org/r")
    code, _, err = run(capsysbinary, "history", "add", TRACE, "--to", place)
    assert (code, err) == (0, f"{TRACE.name}: was there already\n")
    assert entries(place) == [entry]


def test_adding_several_at_a_given_time(tmp_path: Path, capsysbinary) -> None:
    paths = [night(tmp_path, number, 300) for number in range(2)]
    code, _, err = run(capsysbinary, "history", "add", *paths, "--to", tmp_path / "h", "--time", "2026-11-30T02:00Z")
    assert (code, err.count(": added\n")) == (0, 2)
    assert {entry.time_ns for entry in entries(tmp_path / "h")} == {1_796_004_000 * 10**9}


def test_a_baseline_and_a_result_are_added_too(tmp_path: Path, capsysbinary) -> None:
    baseline, result = tmp_path / "baseline.json", tmp_path / "result.json"
    assert run(capsysbinary, "baseline", "save", TRACE, "-o", baseline)[0] == 0
    assert run(capsysbinary, "analyze", night(tmp_path, 0, 300), "--format", "json", "-o", result)[0] == 0
    assert run(capsysbinary, "history", "add", baseline, result, "--to", tmp_path / "h")[0] == 0
    assert {entry.name for entry in entries(tmp_path / "h")} == {TRACE.name, "night0.json"}
    assert all(entry.unit_ns for entry in entries(tmp_path / "h"))


def test_a_broken_capture_is_an_error_and_those_before_it_are_there(tmp_path: Path, capsysbinary) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("no trace")
    code, _, err = run(capsysbinary, "history", "add", TRACE, broken, "--to", tmp_path / "h")
    assert code == 2 and err.splitlines()[-1].startswith("error: ") and "broken.json" in err
    assert len(entries(tmp_path / "h")) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "commit"], "--label commit: write NAME=VALUE"),
        (["--time", "yesterday"], "--time yesterday: write it as"),
    ],
)
def test_wrong_options_of_adding(tmp_path: Path, capsysbinary, options: list[str], words: str) -> None:
    assert words in refused(capsysbinary, "history", "add", TRACE, "--to", tmp_path / "h", *options)
    assert not (tmp_path / "h").exists()


def test_adding_to_what_is_no_history(tmp_path: Path, capsysbinary) -> None:
    (tmp_path / "thesis.tex").write_text("months of work")
    assert "holds other things (thesis.tex)" in refused(capsysbinary, "history", "add", TRACE, "--to", tmp_path)
    assert "thesis.tex" in refused(capsysbinary, "history", "add", TRACE, "--to", tmp_path / "thesis.tex")
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("command", [["show"], ["fleet"], ["report", "-o", "-"]])
@pytest.mark.parametrize("place", ["none", ""])
def test_where_there_is_no_history(tmp_path: Path, capsysbinary, command: list[str], place: str) -> None:
    (name, *options) = command
    said = refused(capsysbinary, "history", name, tmp_path / place, *options)
    assert "holds no history; begin one with `traceanalyzer history add`" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["show"], ["fleet"], ["report", "-o", "-"]])
def test_an_empty_history(tmp_path: Path, capsysbinary, command: list[str]) -> None:
    (tmp_path / "history.json").write_text('{"format": "traceanalyzer history", "version": 1}')
    (name, *options) = command
    code, out, err = run(capsysbinary, "history", name, tmp_path, *options)
    assert (code, err) == (0, "") and out
    assert name == "fleet" or "The history is empty." in out


@pytest.mark.parametrize("arguments", [[], ["add"], ["add", "x.json"], ["show"], ["report", "h"], ["none"]])
def test_missing_arguments(capsysbinary, arguments: list[str]) -> None:
    code, _, _ = run(capsysbinary, "history", *arguments)
    assert code == 2


def test_showing_what_changed(history: Path, capsysbinary) -> None:
    code, out, err = run(capsysbinary, "history", "show", history)
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "SMALL: 8 captures" in words and "c4 to c5" in words and "real" in words
    code, out, _ = run(capsysbinary, "history", "show", history, "--format", "json")
    (series,) = json.loads(out)["series"]
    (shift,) = series["shifts"]
    assert (shift["commits"], shift["verdict"], shift["captures"]) == (["c4", "c5"], "real", 3)


def test_showing_tells_of_what_is_damaged(tmp_path: Path, capsysbinary) -> None:
    run(capsysbinary, "history", "add", TRACE, "--to", tmp_path / "h")
    (tmp_path / "h" / "rows" / "0.parquet").write_bytes(b"damaged")
    code, out, err = run(capsysbinary, "history", "show", tmp_path / "h")
    assert code == 0 and "1 capture" in out
    assert err.startswith("left out: rows/0.parquet: ") and err.count("\n") == 1


def test_a_page_is_written_and_what_it_says_is_told(history: Path, tmp_path: Path, capsysbinary) -> None:
    page = tmp_path / "trend.html"
    code, out, err = run(capsysbinary, "history", "report", history, "-o", page, "--title", "Nights <1>")
    assert (code, out) == (0, "") and "a step takes 20% more time" in err
    assert "<title>Nights &lt;1&gt;" in page.read_text()
    first = page.read_bytes()
    assert run(capsysbinary, "history", "report", history, "-o", page, "--title", "Nights <1>")[0] == 0
    assert page.read_bytes() == first


def test_no_output_is_written_into_the_history(history: Path, capsysbinary) -> None:
    before = sorted(history.rglob("*"))
    for name in ("history.json", "trend.html", "rows/trend.html"):
        said = refused(capsysbinary, "history", "report", history, "-o", history / name)
        assert "lies in the history" in said
    assert sorted(history.rglob("*")) == before
    assert (history / "history.json").read_text().startswith('{"format"')


def test_what_costs_most(history: Path, capsysbinary) -> None:
    code, out, _ = run(capsysbinary, "history", "fleet", history, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert (found["captures"], found["gpu_hours"], found["told_by_label"]) == (NIGHTS, 2.0 * NIGHTS, NIGHTS)
    assert {one["host"] for one in found["costs"]} == {"node1"}
    code, out, _ = run(capsysbinary, "history", "fleet", history, "--format", "json", "--since", "2030-01-01")
    assert json.loads(out)["captures"] == 0
    assert "--since soon: write it as" in refused(capsysbinary, "history", "fleet", history, "--since", "soon")


def test_comparing_with_the_last_captures(history: Path, tmp_path: Path, capsysbinary) -> None:
    """Of those before the level last changed nothing is said."""
    same, slower = night(tmp_path, 90, 500), night(tmp_path, 91, 800)
    code, out, err = run(capsysbinary, "compare", "--history", history, same, "--fail-over", "5%")
    assert (code, err) == (0, "") and "No change" in out
    code, _, err = run(capsysbinary, "compare", "--history", history, slower, "--fail-over", "5%")
    assert code == 1 and err.startswith("failed: ")


def test_checking_against_the_last_captures(history: Path, tmp_path: Path, capsysbinary) -> None:
    same, slower = night(tmp_path, 90, 500), night(tmp_path, 91, 800)
    for path, expected in ((same, 0), (slower, 1)):
        code, out, err = run(capsysbinary, "check", path, *BUDGET, "--history", history)
        assert code == expected, (out, err)


@pytest.mark.parametrize("command", ["compare", "check"])
def test_a_history_that_cannot_be_compared_with(history: Path, tmp_path: Path, capsysbinary, command: str) -> None:
    path = night(tmp_path, 90, 500)
    given = [command, path, *(BUDGET if command == "check" else [])]
    assert "holds no history" in refused(capsysbinary, *given, "--history", tmp_path / "none")
    assert "holds no capture with config=large" in refused(
        capsysbinary, *given, "--history", history, "--label", "config=large"
    )
    code, out, err = run(capsysbinary, *given, "--history", history, "--branch", "other")
    assert (code, out) == (3, "") and "holds no capture on the branch other" in err
    run(capsysbinary, "history", "add", path, "--to", tmp_path / "two", "--label", "config=a")
    run(capsysbinary, "history", "add", night(tmp_path, 91, 500), "--to", tmp_path / "two", "--label", "config=b")
    assert "holds 2 series; say which with --label" in refused(capsysbinary, *given, "--history", tmp_path / "two")
