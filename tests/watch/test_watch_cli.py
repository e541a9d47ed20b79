"""`traceanalyzer watch` as a new user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.watch.scene import Scene, trace


def options(scene: Scene, *more: object) -> list[object]:
    return [scene.landing, "--history", scene.history, "--reports", scene.reports, "--once", "--settle", "0", *more]


def test_once_takes_all_that_lies_there_and_ends(scene: Scene, capsysbinary) -> None:
    for night in range(2):
        scene.land(f"night{night}.json", trace(night))
    scene.land("broken.json", b"no trace")
    more = ["--metrics", scene.metrics, "--log", scene.log, "--keep", "1", "--label", "config=small"]
    code, out, err = run(capsysbinary, "watch", *options(scene, *more))
    assert (code, out) == (0, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["left out", "night0.json", "night1.json"]
    assert [entry.labels["config"] for entry in scene.entries()] == ["small"] * 2
    assert (len(scene.lines()), len(scene.pages())) == (2, 1)
    assert "history_captures" in scene.metrics.read_text()
    assert run(capsysbinary, "watch", *options(scene, *more)) == (0, "", "")


def test_a_watcher_in_processes_of_its_own(scene: Scene, monkeypatch: pytest.MonkeyPatch, capsysbinary) -> None:
    """As it is used: what the other tests do here is done in processes there."""
    monkeypatch.undo()
    scene.land("night.json", trace())
    code, _, err = run(capsysbinary, "watch", *options(scene))
    assert (code, err) == (0, "night.json: taken\n")
    assert len(scene.entries()) == len(scene.pages()) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--label", "small"], "--label small: write NAME=VALUE"),
        (["--run", ""], "--run: names no command"),
        (["--run", "say 'it"], "--run: "),
        (["--webhook", "ftp://example.org/x"], "--webhook: give a URL that begins with https:// or http://"),
        (["--webhook", "https:///x"], "--webhook: give a URL"),
    ],
)
def test_wrong_options(scene: Scene, capsysbinary, more: list[str], words: str) -> None:
    scene.land("night.json", trace())
    assert words in refused(capsysbinary, "watch", *options(scene, *more))
    assert not scene.history.exists() and not scene.reports.exists()


@pytest.mark.parametrize(
    "more", [["--every", "0"], ["--keep", "0"], ["--settle", "nan"], ["--on", "never"], ["--limit-mb", "0"]]
)
def test_values_that_cannot_be(scene: Scene, capsysbinary, more: list[str]) -> None:
    scene.landing.mkdir()
    code, out, _ = run(capsysbinary, "watch", *options(scene, *more))
    assert (code, out) == (2, "")


@pytest.mark.parametrize("inside", ["--history", "--reports", "--metrics", "--log"])
def test_nothing_is_written_to_what_is_watched(scene: Scene, capsysbinary, inside: str) -> None:
    scene.land("night.json", trace())
    said = refused(capsysbinary, "watch", *options(scene, inside, scene.landing / "x" / "y"))
    assert "which is watched; choose a place outside of it" in said
    assert [one.name for one in scene.landing.iterdir()] == ["night.json"]


def test_no_place_to_watch(scene: Scene, capsysbinary) -> None:
    assert "there is no such folder; make it, or name another" in refused(capsysbinary, "watch", *options(scene))


def test_a_history_that_is_none(scene: Scene, capsysbinary) -> None:
    scene.land("night.json", trace())
    scene.history.mkdir()
    (scene.history / "thesis.tex").write_text("months of work")
    assert "holds other things (thesis.tex)" in refused(capsysbinary, "watch", *options(scene))
    assert [one.name for one in Path(scene.history).iterdir()] == ["thesis.tex"]
