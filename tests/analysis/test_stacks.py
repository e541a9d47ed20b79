"""Flame graphs for other programs, and the heaviest paths as text: true to the trees of calls."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.analysis import parts_of
from traceanalyzer.analysis.stacks import MOST, stacks
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.derive.trees.heavy_paths import heavy_paths
from traceanalyzer.derive.trees.tables import CALL_TREES
from traceanalyzer.render.stacks_text import render_stacks

CAPTURE = FIXTURES / "captured" / "log_metrics.json.gz"
JOB = FIXTURES / "multirank" / "gpu_straggler.slow"


@pytest.fixture
def export(capsysbinary, tmp_path):
    """Runs `export` and gives what it wrote."""

    def exported(path: Path, form: str, *flags: str) -> str:
        target = tmp_path / f"{form}.out"
        code, _, err = run(capsysbinary, "export", path, "-o", target, "--format", form, *flags)
        assert code == 0, err
        return target.read_text(encoding="utf-8")

    return exported


def folded(text: str) -> dict[tuple[str, ...], int]:
    found = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        assert tuple(stack.split(";")) not in found
        found[tuple(stack.split(";"))] = int(weight)
    return found


def unfolded(profile: dict, frames: list[dict]) -> dict[tuple[str, ...], int]:
    """The stacks of an evented profile, which opens and closes its frames in order."""
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("evented", "nanoseconds", 0)
    found: dict[tuple[str, ...], int] = {}
    opened: list[int] = []
    at = 0
    for event in profile["events"]:
        assert set(event) == {"type", "frame", "at"}
        assert event["at"] >= at
        if event["at"] > at:
            stack = tuple(frames[frame]["name"] for frame in opened)
            found[stack] = found.get(stack, 0) + event["at"] - at
            at = event["at"]
        if event["type"] == "O":
            opened.append(event["frame"])
        else:
            assert event["type"] == "C"
            assert opened.pop() == event["frame"]
    assert not opened
    assert at == profile["endValue"]
    return found


def test_both_formats_say_the_same_and_are_the_ledger(export):
    trees = ("idle", "gpu", "communication", "copies", "host")
    flags = [flag for tree in trees for flag in ("--tree", tree)]
    stacks = folded(export(CAPTURE, "folded", *flags))
    file = json.loads(export(CAPTURE, "speedscope", *flags))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) == {"$schema", "exporter", "profiles", "shared"}
    again = {}
    for profile in file["profiles"]:
        for stack, ns in unfolded(profile, file["shared"]["frames"]).items():
            again[(profile["name"], *(name.replace(";", ":") for name in stack))] = ns
    assert again == stacks
    (ledger,) = Catalog(ta.load(CAPTURE)).table("ledger").to_pylist()
    totals: dict[str, int] = {}
    for (root, *_), ns in stacks.items():
        totals[root] = totals.get(root, 0) + ns
    assert totals == {
        "GPU 0 idle": ledger["idle"],
        "GPU 0 compute": ledger["compute"],
        "GPU 0 exposed copies": ledger["exposed_memcpy"],
        "launching threads": 2 * ledger["duration"],
    }


def test_idle_time_is_what_is_asked_for_most(export):
    assert {stack[0] for stack in folded(export(CAPTURE, "folded"))} == {"GPU 0 idle"}


def test_ranks_are_told_apart_and_chosen(export):
    every = {stack[0] for stack in folded(export(JOB, "folded"))}
    assert len(every) > 1
    assert all(name.startswith("rank ") for name in every)
    assert len({stack[0] for stack in folded(export(JOB, "folded", "--ranks", "1"))}) == 1


def test_names_are_one_line_and_one_frame(export, tmp_path):
    made = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=(90, 95))
    made.range("evil;name\nwith 7", 20, 60, category="cpu_op").range("\u2028", 25, 30, category="cpu_op")
    found = folded(export(made.write(tmp_path / "t.json"), "folded"))
    assert ("GPU 0 idle", "host_work", "evil:name with 7") in found
    file = json.loads(export(tmp_path / "t.json", "speedscope"))
    assert {"name": "evil;name\nwith 7"} in file["shared"]["frames"]


def test_people_are_kept_on_request_only(export, tmp_path):
    made = KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110, launch=(90, 95))
    made.range("read /home/zqperson/proj/data.bin", 20, 60, category="cpu_op")
    path = made.write(tmp_path / "t.json")
    for form in ("speedscope", "folded"):
        assert "zqperson" not in export(path, form)
        assert "zqperson" in export(path, form, "--no-redact")


def test_packed_by_its_name_and_the_same_bytes(capsysbinary, tmp_path):
    plain = run(capsysbinary, "export", CAPTURE, "-f", "folded", "-o", "-")[1]
    run(capsysbinary, "export", CAPTURE, "-f", "folded", "-o", tmp_path / "x.gz")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()).decode() == plain


def test_a_tree_without_time_is_said(capsysbinary, tmp_path):
    code, _, err = run(
        capsysbinary, "export", CAPTURE, "-f", "speedscope", "--tree", "communication", "-o", tmp_path / "x"
    )
    assert code == 0
    assert "no tree: nothing of the time of communication was recorded" in err
    assert json.loads((tmp_path / "x").read_text())["profiles"] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["export", "-o", "-", "--tree", "gpu"], "--tree: chooses flame graphs"),
        (["export", "-o", "-", "--format", "folded", "--tree", "cpu"], "--tree"),
        (["analyze", "--stacks", "--format", "json"], "--stacks: shows paths as text"),
    ],
)
def test_what_does_not_fit_together_is_said(capsysbinary, args, words):
    code, out, err = run(capsysbinary, args[0], CAPTURE, *args[1:])
    assert (code, out) == (2, "")
    assert words in err


def test_the_heaviest_path_is_what_was_planted(capsysbinary):
    plain = run(capsysbinary, "analyze", CAPTURE)[1]
    code, out, _ = run(capsysbinary, "analyze", CAPTURE, "--stacks")
    assert code == 0
    assert out.startswith(plain)
    shown = out[len(plain) :]
    assert "host work > … >" in shown
    assert "(log_metrics)" in shown.split("%  ")[1]
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_paths_and_the_rest_are_all_of_a_tree():
    (part,) = parts_of(ta.load(CAPTURE))
    found = stacks(part, Config())
    assert [tree.tree for tree in found] == ["idle", "gpu", "copies", "host"]
    for tree in found:
        assert 0 < len(tree.paths) <= MOST
        assert tree.rest_ns >= 0
    assert found[0].paths[0].names[-1].endswith("(iterencode)")
    assert found[0].step_ns


def test_nothing_to_show():
    assert "no GPU work" in render_stacks([])


nodes = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 30)), min_size=1, max_size=40)


@given(nodes, st.sampled_from([0.03, 0.1, 0.5]))
def test_no_time_is_in_two_paths(nodes, least):
    """Nodes of a random tree in the order of their numbers, each in an earlier one."""
    parent = [-1] + [at % number for number, (at, _) in enumerate(nodes[1:], 1)]
    own = [ns for _, ns in nodes]
    total = own.copy()
    for node in range(len(own) - 1, 0, -1):
        total[parent[node]] += total[node]
    rows = [
        {"rank": 0, "device": 0, "tree": "idle", "node": at, "parent": parent[at], "name": str(at), "kind": "python",
         "total_ns": total[at], "self_ns": own[at]}
        for at in range(len(own))
    ]  # fmt: skip
    found = heavy_paths(pa.Table.from_pylist(rows, schema=CALL_TREES.schema), least)
    assert sum(ns for _, ns in found) <= total[0]
    assert all(ns >= least * total[0] for _, ns in found)
    ends = [path[-1] for path, _ in found]
    assert len(set(ends)) == len(ends)
    for path, ns in found:
        # What lies in an end is its own or that of another end in it.
        inner = sum(other for way, other in found if path[-1] in way[:-1])
        assert ns + inner <= total[path[-1]]
        assert [parent[row] for row in path] == [0, *path[:-1]]
