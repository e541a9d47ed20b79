"""No output is an input, whatever it is called, and no folder of a user's own is ever taken for a store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.kineto import KinetoTrace
from traceanalyzer.errors import InputError
from traceanalyzer.files import replacing, resolve_place


def everything(folder: Path) -> dict[str, bytes | str]:
    """What lies below a folder: content of files, targets of links."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The current folder: a trace, a folder of ranks, a store, a thesis, rules, budgets and a baseline."""
    monkeypatch.chdir(tmp_path)
    for name in ("t.json", "run/rank0.json", "run/deep/rank1.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        KinetoTrace().op(0, len(name)).write(tmp_path / name)
    from traceanalyzer.ingest.storing import ingest_to_store

    ingest_to_store([tmp_path / "t.json"], tmp_path / "s", "test")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("precious")
    return tmp_path


PLACES = ("absent/../{}", "thesis/../{}", "./{}", "thesis/link/{}", "../{here}/{}")


@pytest.mark.parametrize("place", PLACES)
def test_an_input_is_never_written_to_however_it_is_spelled(capsysbinary, here, place):
    (here / "thesis" / "link").symlink_to(here)
    before = everything(here)
    spelled = place.format("t.json", here=here.name)
    for verb in ("analyze", "report", "export", "doctor"):
        assert "is an input" in refused(capsysbinary, verb, "t.json", "-o", spelled)
    assert "is an input" in refused(capsysbinary, "baseline", "save", "t.json", "--anyway", "-o", spelled)
    assert "is an input" in refused(capsysbinary, "check", "t.json", "--assert", "INP001", "-o", spelled)
    assert "is an input" in refused(capsysbinary, "compare", "s", "t.json", "-o", spelled)
    for verb, more in (("analyze", []), ("report", ["-o", "r.html"])):
        assert "is an input" in refused(capsysbinary, verb, "t.json", *more, "--also", f"json={spelled}")
        assert "is an input" in refused(capsysbinary, verb, "t.json", *more, "--store", spelled)
    assert "is an input" in refused(capsysbinary, "ingest", "t.json", "-o", spelled)
    assert "lies in the store" in refused(capsysbinary, "analyze", "s", "-o", place.format("s/r.txt", here=here.name))
    assert everything(here) == before


def test_links_to_an_input_are_the_input(capsysbinary, here):
    (here / "soft").symlink_to("t.json")
    (here / "hard").hardlink_to("t.json")
    (here / "thesis" / "ranks").symlink_to("../run")
    before = everything(here)
    for name in ("soft", "hard"):
        assert "is an input" in refused(capsysbinary, "analyze", "t.json", "-o", name)
        assert "is an input" in refused(capsysbinary, "analyze", name, "-o", "t.json")
        assert "is an input" in refused(capsysbinary, "analyze", f"file://{here}/t.json", "-o", name)
    for name in ("run/rank0.json", "run/deep/rank1.json", "thesis/ranks/rank0.json"):
        assert "is an input" in refused(capsysbinary, "analyze", "run", "-o", name)
    (here / "s" / "part").hardlink_to("t.json")
    assert "lies in the store" in refused(capsysbinary, "analyze", "s", "-o", "t.json")
    (here / "s" / "part").unlink()
    assert everything(here) == before


def test_what_a_run_left_in_its_folder_is_written_again(capsysbinary, here):
    for _ in range(2):
        args = ("--also", "json=run/result.json", "--also", "csv=run/findings.csv")
        assert run(capsysbinary, "report", "run", "-o", "run/report.html", *args)[0] in (0, 3)
    assert sorted(path.name for path in (here / "run").iterdir()) == [
        *("deep", "findings.csv", "rank0.json", "report.html", "result.json")
    ]


def test_standard_input_is_an_input(here):
    for out in ("t.json", "absent/../t.json"):
        with (here / "t.json").open("rb") as stream:
            command = [sys.executable, "-m", "traceanalyzer", "analyze", "-", "-o", out]
            done = subprocess.run(command, stdin=stream, capture_output=True, check=False, env=os.environ)
        assert done.returncode == 2 and b"is an input" in done.stderr


def test_what_else_is_read_is_not_written_to(capsysbinary, here):
    (here / "rules").mkdir()
    (here / "rules" / "own.yaml").write_text("id: OWN001\n")
    (here / "budgets.yaml").write_text("budgets:\n  INP001: warn\n")
    (here / "base.json").write_text("{}")
    before = everything(here)
    for verb in ("analyze", "report", "export"):
        said = refused(capsysbinary, verb, "t.json", "--rules", "rules", "-o", "absent/../rules/own.yaml")
        assert "is a file of rules" in said
    budgets = ("--config", "budgets.yaml", "--baseline", "base.json")
    assert "is an input" in refused(capsysbinary, "check", "t.json", *budgets, "-o", "x/../budgets.yaml")
    assert "is an input" in refused(capsysbinary, "check", "t.json", *budgets, "--also", "json=./base.json")
    (here / "pyproject.toml").write_text('[tool.traceanalyzer]\ndisable = ["KRN005"]\n')
    before = everything(here)
    assert "is an input" in refused(capsysbinary, "analyze", "t.json", "-o", "thesis/../pyproject.toml")
    assert everything(here) == before


@pytest.mark.parametrize("side", ["-wal", "-shm", "-journal", "-WAL"])
def test_nothing_is_put_beside_a_database_that_sqlite_reads(capsysbinary, here, side):
    (here / "t.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(100))
    assert "would be taken for a part of" in refused(capsysbinary, "analyze", "t.sqlite", "-o", f"t.sqlite{side}")
    shutil.move("t.sqlite", "run/t.sqlite")
    assert "would be taken for a part of" in refused(capsysbinary, "analyze", "run", "-o", f"run/t.sqlite{side}")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("out", "absent/../out"),
        ("out", "OUT"),
        ("out", "out/below"),
        ("out", "thesis/link/out"),
        ("caf\u00e9", "cafe\u0301"),
        ("a", "b"),
    ],
)
def test_two_outputs_are_two_files(capsysbinary, here, first, second):
    (here / "thesis" / "link").symlink_to(here)
    if first == "a":
        (here / "a").write_text("x")
        (here / "b").hardlink_to("a")
    said = refused(capsysbinary, "analyze", "t.json", "-o", first, "--also", f"json={second}")
    assert "another output goes to" in said
    assert "another output goes there" in refused(
        capsysbinary, "analyze", "t.json", "-o", first, "--store", second
    ) or (first == "a")


def test_a_store_is_kept_apart_from_outputs(capsysbinary, here):
    for out in ("new/r.txt", ".new.parts/r.txt", "new", "thesis/../new/x"):
        assert "another output" in refused(capsysbinary, "analyze", "t.json", "-o", out, "--store", "new")
    assert "lies in the store" in refused(capsysbinary, "analyze", "s", "-o", ".s.parts/r.txt")


@pytest.mark.parametrize(
    "place",
    [
        "absent/../thesis",
        "thesis",
        "thesis/",
        "file://{here}/absent/../thesis",
        "link",
        "link/../thesis",
        "../{name}/thesis",
    ],
)
def test_a_folder_of_others_is_no_place_for_a_store(capsysbinary, here, place):
    (here / "link").symlink_to("thesis")
    before = everything(here)
    place = place.format(here=here, name=here.name)
    assert "is not a store" in refused(capsysbinary, "ingest", "t.json", "-o", place)
    assert "is not a store" in refused(capsysbinary, "analyze", "t.json", "--store", place)
    assert everything(here) == before


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("run", "is an input"),
        ("thesis/ranks", "is an input"),
        (".", "holds the input"),
        ("..", "holds the input"),
        ("absent/..", "holds the input"),
        ("/", "holds the input"),
    ],
)
def test_a_store_is_kept_apart_from_inputs(capsysbinary, here, place, words):
    (here / "thesis" / "ranks").symlink_to("../run")
    before = everything(here)
    assert words in refused(capsysbinary, "ingest", "run", "-o", place)
    assert words in refused(
        capsysbinary, "analyze", "run", "--store", f"file://{here}/{place}" if place[0] != "/" else place
    )
    assert everything(here) == before


def test_a_store_may_lie_among_traces_but_not_in_a_store(capsysbinary, here):
    before = everything(here)
    assert run(capsysbinary, "ingest", "run", "-o", "run/new.store")[0] == 0
    assert run(capsysbinary, "analyze", "run")[0] in (0, 3)
    assert "lies in the input" in refused(capsysbinary, "ingest", "s", "-o", "absent/../s/gpu_ops/new")
    shutil.rmtree("run/new.store")
    assert everything(here) == before


def own(folder: Path, name: str, content: str = "mine") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)


@pytest.mark.parametrize(
    "name",
    [
        "s/notes.txt",
        "s/gpu_ops/notes.txt",
        "s/gpu_ops/rank=0/part-1.parquet",
        "s/gpu_ops/rank=7/part-0.parquet",
        "s/gpu_ops/rank=0/deeper/x",
        "s/devices/x=1/part-0.parquet",
        ".s.parts/notes.txt",
        ".s.parts/old/chapter1.txt",
        ".s.parts/new/gpu_ops/notes.txt",
        ".s.parts/" + "a" * 64 + "/notes.txt",
        ".s.parts/old",
        ".s.parts",
    ],
)
def test_what_is_not_of_a_store_is_not_removed_with_it(capsysbinary, here, name):
    own(here, name)
    before = everything(here)
    said = refused(capsysbinary, "ingest", "t.json", "-o", "s")
    assert "choose another name" in said
    assert everything(here) == before


def test_links_in_a_store_are_not_followed(capsysbinary, here):
    shutil.move("s/gpu_ops", "thesis/gpu_ops")
    (here / "s" / "gpu_ops").symlink_to("../thesis/gpu_ops")
    before = everything(here)
    assert "also holds gpu_ops" in refused(capsysbinary, "ingest", "t.json", "-o", "s")
    (here / "s" / "gpu_ops").unlink()
    shutil.move("thesis/gpu_ops", "s/gpu_ops")
    (here / "links").mkdir()
    (here / "links" / "s").symlink_to("../s")
    assert run(capsysbinary, "ingest", "run", "-o", "links/s")[0] == 0
    assert (here / "links" / "s").is_symlink() and (here / "s" / "gpu_ops" / "rank=1").is_dir()
    assert everything(here / "thesis") == {name[7:]: x for name, x in before.items() if "chapter" in name}


def test_a_table_without_a_manifest_may_be_anybodys(capsysbinary, here):
    """A folder that happens to be laid out as a store is one only if the tables are ours."""
    (here / "s" / "manifest.json").unlink()
    assert run(capsysbinary, "ingest", "t.json", "-o", "s")[0] == 0
    own(here, "mine/steps/rank=0/part-0.parquet")
    assert "also holds steps/rank=0/part-0.parquet" in refused(capsysbinary, "ingest", "t.json", "-o", "mine")


def test_a_loop_of_links_is_one_line(capsysbinary, here):
    (here / "a").symlink_to("b")
    (here / "b").symlink_to("a")
    for out in ("a", "a/x", "b"):
        for verb in ("analyze", "ingest", "report"):
            said = refused(capsysbinary, verb, "t.json", "-o", out)
            assert "loop of links" in said or "Too many levels" in said
        assert "a" in refused(capsysbinary, "analyze", "t.json", "--store", out)
    assert "cannot be used" in refused(capsysbinary, "analyze", "t.json", "-o", "x" * 300)


def test_home_is_home(capsysbinary, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here / "thesis"))
    assert run(capsysbinary, "analyze", "t.json", "-o", "~/r.txt", "--also", "json=~/r.json", "--store", "~/s")[0] in (
        0,
        3,
    )
    assert {path.name for path in (here / "thesis").iterdir()} == {"chapter1.txt", "r.json", "r.txt", "s"}
    assert not (here / "~").exists()


@pytest.mark.parametrize("url", ["s3://bucket/r.txt", "memory://x/r.txt", "file:///r.txt"])
def test_outputs_are_files(capsysbinary, here, url):
    assert "outputs are written to this machine" in refused(capsysbinary, "analyze", "t.json", "-o", url)
    assert not any(":" in path.name for path in here.iterdir())


def test_a_protected_output_stays(capsysbinary, here):
    (here / "r.txt").write_text("mine")
    (here / "r.txt").chmod(0o444)
    assert "write-protected" in refused(capsysbinary, "analyze", "t.json", "-o", "r.txt")
    (here / "r.txt").chmod(0o640)
    assert run(capsysbinary, "analyze", "t.json", "-o", "r.txt")[0] in (0, 3)
    assert (here / "r.txt").stat().st_mode & 0o777 == 0o640


def test_a_place_that_leads_elsewhere_by_now_is_not_written_to(here):
    from traceanalyzer.cli.common import write

    (here / "dir").mkdir()
    place = resolve_place(Path("dir/r.txt"))
    (here / "dir").rmdir()
    (here / "dir").symlink_to("thesis")
    with pytest.raises(InputError, match="leads somewhere else now"):
        write(b"x", place)
    assert [path.name for path in (here / "thesis").iterdir()] == ["chapter1.txt"]


def test_only_what_nobody_writes_any_more_is_cleared_away(here):
    """What another process is writing at this moment stays, what a killed one left goes."""
    place = here / "r.txt"
    left = here / ".r.txt.abcd1234.unfinished"
    left.write_text("half")
    with replacing(place) as one:
        assert not left.exists()
        with replacing(place) as two:
            two.write(b"two")
        one.write(b"one")
    assert place.read_bytes() == b"one"
    assert not [path for path in here.iterdir() if path.name.startswith(".")]
