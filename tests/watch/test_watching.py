"""What becomes of captures that land: whole ones are taken once, others wait or are left out."""

from __future__ import annotations

import gzip
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.watch.scene import Scene, trace
from traceanalyzer.errors import InputError
from traceanalyzer.files import replacing
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.urls import RemoteError, RemoteFolder
from traceanalyzer.watch import outputs, taking, watching
from traceanalyzer.watch.watching import BLOCKED, KNOWN, WAITS, CrashedError, Watcher


def test_what_landed_is_taken_once(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    for night in range(3):
        scene.land(f"night{night}.json", trace(night))
    watcher = scene.watcher()
    assert watcher.look() == KNOWN
    assert capsys.readouterr().err.splitlines() == [f"night{night}.json: taken" for night in range(3)]
    assert watcher.look() == KNOWN
    assert scene.look() == KNOWN
    assert capsys.readouterr().err == ""
    assert [entry.name for entry in scene.entries()] == ["night0.json", "night1.json", "night2.json"]
    assert scene.pages() == {f"{entry.id}.html" for entry in scene.entries()}
    assert [line["id"] for line in scene.lines()] == [entry.id for entry in scene.entries()]


def test_captures_stay_as_they_are(scene: Scene) -> None:
    place = scene.land("night.json", trace())
    before = place.stat(), place.read_bytes()
    scene.look()
    assert (place.stat().st_mtime_ns, place.read_bytes()) == (before[0].st_mtime_ns, before[1])
    assert [one.name for one in scene.landing.iterdir()] == ["night.json"]


def test_a_copy_under_another_name_is_the_same_capture(scene: Scene) -> None:
    scene.land("one.json", trace())
    scene.look()
    scene.land("two.json", trace())
    assert scene.look() == KNOWN
    assert [entry.name for entry in scene.entries()] == ["one.json"]
    assert len(scene.lines()) == 1


def test_what_lands_later_is_taken_then(scene: Scene) -> None:
    watcher = scene.watcher()
    assert watcher.look() == KNOWN
    assert (scene.reports / "index.html").exists()
    for night in range(2):
        scene.land(f"night{night}.json", trace(night))
        assert watcher.look() == KNOWN
        assert len(scene.entries()) == len(scene.lines()) == len(scene.pages()) == night + 1


def test_a_folder_of_ranks_is_one_capture(scene: Scene) -> None:
    (scene.landing / "job").mkdir(parents=True)
    for rank in range(2):
        made = trace(rank)
        made.metadata["distributedInfo"] = {"rank": rank, "world_size": 2}
        made.write(scene.landing / "job" / f"rank{rank}.json")
    assert scene.look() == KNOWN
    (entry,) = scene.entries()
    assert (entry.name, entry.gpu_count, entry.world_size) == ("job", 2, 2)


def test_what_is_hidden_or_marked_as_unfinished_is_no_capture(scene: Scene) -> None:
    for name in (".night.json.swp", "night.json.tmp", "night.json.part", "Night.JSON.PARTIAL", "night.json~"):
        scene.land(name, trace())
    (scene.landing / "empty folder").mkdir()
    assert scene.look() == KNOWN
    assert scene.pages() == set()
    scene.land("night.json", (scene.landing / "night.json.tmp").read_bytes())
    scene.look()
    assert [entry.name for entry in scene.entries()] == ["night.json"]


def test_what_still_grows_waits(scene: Scene) -> None:
    content = trace().text().encode()
    place = scene.land("night.json", content[:200])
    watcher = scene.watcher(settle_s=3600)
    for end in (400, 600):
        assert watcher.look() == WAITS
        place.write_bytes(content[:end])
    assert not scene.history.exists() or Shelf(scene.history).ids() == set()
    place.write_bytes(content)
    assert watcher.look() == WAITS
    hour_ago = time.time() - 3601
    os.utime(place, (hour_ago, hour_ago))
    assert watcher.look() == KNOWN
    assert len(scene.entries()) == 1


@pytest.mark.parametrize("name", ["night.json", "night.json.gz"])
def test_what_was_cut_short_waits_until_it_is_whole(
    scene: Scene, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = trace().text().encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    scene.land(name, content[: len(content) * 3 // 4])
    watcher = scene.watcher()
    assert watcher.look() == WAITS
    assert f"{name}: not whole yet" in capsys.readouterr().err
    assert not Shelf(scene.history).ids() and scene.pages() == set()
    scene.land(name, content)
    assert watcher.look() == KNOWN
    (entry,) = scene.entries()
    assert (entry.name, entry.damage) == (name, [])
    assert len(scene.lines()) == len(scene.pages()) == 1


def test_what_is_never_completed_is_taken_as_it_is_in_the_end(scene: Scene) -> None:
    content = trace().text().encode()
    scene.land("night.json", content[: len(content) * 3 // 4])
    assert scene.look(give_up_s=0) == KNOWN
    (entry,) = scene.entries()
    assert entry.damage


def test_a_broken_file_is_told_and_left_out_until_it_changes(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.land("broken.json", b"no trace at all")
    scene.land("whole.json", trace())
    assert scene.look() == KNOWN
    told = capsys.readouterr().err
    assert told.count("left out: ") == 1 and "broken.json" in told
    assert scene.look() == KNOWN
    assert capsys.readouterr().err == ""
    assert [entry.name for entry in scene.entries()] == ["whole.json"]
    scene.land("broken.json", trace(1))
    assert scene.look() == KNOWN
    assert [entry.name for entry in scene.entries()] == ["whole.json", "broken.json"]


def test_only_the_newest_reports_are_kept(scene: Scene) -> None:
    for night in range(4):
        scene.land(f"night{night}.json", trace(night))
    (scene.reports).mkdir()
    own = scene.reports / f"{'0' * 32}.html"
    own.write_text("somebody's own page")
    scene.look(keep=2)
    newest = {f"{entry.id}.html" for entry in scene.entries()[-2:]}
    assert scene.pages() == newest | {own.name}
    assert len(scene.entries()) == len(scene.lines()) == 4
    index = (scene.reports / "index.html").read_text()
    assert [f"{entry.id}.html" in index for entry in scene.entries()] == [False, False, True, True]


def test_two_watchers_at_one_place(scene: Scene) -> None:
    """What one is at waits for the other, and what one has taken the other publishes too."""
    scene.land("night.json", trace())
    one, other = scene.watcher(), scene.watcher()
    (landed,) = watching.captures_in(scene.landing)
    with one._desk.at(landed.key) as alone:
        assert alone
        assert other.look() == WAITS
        assert scene.pages() == set()
    assert one.look() == KNOWN
    assert other.look() == KNOWN
    assert len(scene.entries()) == len(scene.lines()) == len(scene.pages()) == 1


def test_another_watcher_at_the_outputs_is_waited_for(scene: Scene) -> None:
    scene.land("night.json", trace())
    one, other = scene.watcher(), scene.watcher()
    with one._desk.at(watching._PUBLISHING):
        assert other.look() == WAITS
        assert not scene.log.exists()
    assert other.look() == KNOWN
    assert len(scene.lines()) == 1


@pytest.mark.parametrize("module", [taking, outputs])
def test_a_full_disk_is_tried_again(
    scene: Scene, module: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.land("night.json", trace())
    watcher = scene.watcher()

    def full(place: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "replacing", full)
        assert watcher.look() == BLOCKED
        assert watcher.look() == BLOCKED
    assert "No space left on device" in capsys.readouterr().err
    assert module.replacing is replacing  # type: ignore[attr-defined]
    assert watcher.look() == KNOWN
    assert len(scene.entries()) == len(scene.lines()) == len(scene.pages()) == 1


def test_a_history_that_cannot_be_written_is_tried_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.land("night.json", trace())
    watcher = scene.watcher()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("traceanalyzer.history.folders.LocalPlace.write", full)
        assert watcher.look() == BLOCKED
    assert watcher.look() == KNOWN
    assert [entry.name for entry in scene.entries()] == ["night.json"]


def test_a_single_run_ends_where_a_disk_stays_full(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.land("night.json", trace())

    def full(place: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(taking, "replacing", full)
        with pytest.raises(InputError, match="not all could be done, as said; the next run goes on there"):
            scene.watcher().run(once=True)
    assert capsys.readouterr().err.count("No space left on device") == 3
    scene.watcher().run(once=True)
    assert len(scene.entries()) == 1


@pytest.mark.parametrize(
    "fault", [ConnectionResetError("reset"), TimeoutError(), OSError(5, "Input/output error"), RemoteError("SlowDown")]
)
def test_a_network_that_fails_is_not_the_captures_fault(
    scene: Scene, fault: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is tried again, and not left out until it changes."""
    url = f"memory://{scene.folder.name}"
    RemoteFolder(url).write("night.json", trace().text().encode())
    given = scene.watcher()._given
    watcher = Watcher(replace(given, place=url))

    def fails(*_: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "download", fails)
        assert watcher.look() == BLOCKED
    assert "again in" in capsys.readouterr().err
    assert watcher.look() == KNOWN
    assert [entry.name for entry in scene.entries()] == ["night.json"]


def test_what_is_gone_when_it_is_read_is_left_out(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.land("night.json", trace())
    watcher = scene.watcher()
    landed = watching.captures_in(scene.landing)
    monkeypatch.setattr(watching, "captures_in", lambda _: landed)
    (scene.landing / "night.json").unlink()
    assert watcher.look() == KNOWN
    assert scene.pages() == set()


def test_the_surroundings_of_a_watcher_label_no_capture(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commit and its node are not those that ran."""
    for name in ("GITHUB_SHA", "NODE_NAME", "SLURM_JOB_NAME"):
        monkeypatch.setenv(name, "the-watchers")
    scene.land("night.json", trace())
    scene.look(labels=["project=llm"])
    assert [entry.labels for entry in scene.entries()] == [{"project": "llm"}]


def test_a_capture_that_ends_its_process_is_left_alone_after_some_tries(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.land("large.json", trace())
    here, tries = watching.in_own_process, []

    def crashes(work: object, *arguments: object) -> object:
        if work is watching.take:
            tries.append(work)
            raise CrashedError
        return here(work, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "in_own_process", crashes)
    watcher = scene.watcher()
    assert [watcher.look() for _ in range(5)] == [WAITS, WAITS, KNOWN, KNOWN, KNOWN]
    assert len(tries) == 3
    assert "(try 3 of 3)" in capsys.readouterr().err


@pytest.mark.parametrize("fault", [MemoryError(), KeyError("a fault of ours")])
def test_a_fault_in_judging_one_capture_does_not_stop_the_others(
    scene: Scene, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.land("bad.json", trace())
    scene.land("good.json", trace(1))
    here = watching.in_own_process

    def faulty(work: object, *arguments: object) -> object:
        if arguments and arguments[0] == scene.landing / "bad.json":
            raise fault
        return here(work, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "in_own_process", faulty)
    scene.watcher().run(once=True)
    assert [entry.name for entry in scene.entries()] == ["good.json"]


def test_a_place_that_is_no_history_is_said_before_anything_is_taken(scene: Scene) -> None:
    scene.land("night.json", trace())
    scene.history.mkdir()
    (scene.history / "thesis.tex").write_text("months of work")
    with pytest.raises(InputError, match="holds other things"):
        scene.watcher().run(once=True)
    (scene.history / "thesis.tex").unlink()
    scene.watcher().run(once=True)
    assert len(scene.entries()) == 1


def test_nothing_to_watch(scene: Scene) -> None:
    watcher = scene.watcher()
    scene.landing.rmdir()
    with pytest.raises(InputError, match="there is no such folder; make it, or name another"):
        watcher.look()
