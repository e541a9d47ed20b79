"""The critical path over the ranks of a job: it adds up to its steps, goes over to who came last, and says what its links give."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.ranks.test_replay import JOBS
from traceanalyzer.analysis import Analysis, ReportTables, analyze_parts, load, parts_of
from traceanalyzer.columns import frames
from traceanalyzer.config import Config
from traceanalyzer.derive.replay import critical_path
from traceanalyzer.intervals import total, union
from traceanalyzer.ranks.replay import line_paths
from traceanalyzer.render.text import render_text
from traceanalyzer.report.timeline.timeline import draft_timeline
from traceanalyzer.result.critical_path import TRANSFER, CriticalPath

FIXTURES = Path(__file__).parents[1] / "fixtures"


@cache
def analysis(job: str) -> Analysis:
    return analyze_parts(parts_of(load(FIXTURES / job)))


def path_of(job: str) -> CriticalPath:
    path = analysis(job).result.critical_path
    assert path is not None
    return path


@pytest.mark.parametrize("job", JOBS)
def test_the_path_adds_up_to_the_steps_of_the_line_that_ends_last(job: str) -> None:
    found = analysis(job)
    path, steps = found.tables.table("job_path"), found.tables.table("step_stats")
    step, length = frames.ints(path, "step"), frames.duration(path)
    sums = {int(one): int(length[step == one].sum()) for one in np.unique(step)}
    of_gpus = {
        key: dict(zip(rows["index"].to_pylist()[1:], np.diff(frames.ints(rows, "done_ns")).tolist(), strict=True))
        for key, rows in frames.split(steps)
    }
    assert sums in list(of_gpus.values())
    told = path_of(job)
    assert told.ns == sum(sums.values()) == sum(one.ns for one in told.kinds)
    assert told.ns == told.left_ns + sum(link.ns for link in told.links)
    assert told.step_count == len(sums)


@pytest.mark.parametrize("job", JOBS)
def test_no_link_gives_more_than_its_length(job: str) -> None:
    links = path_of(job).links
    assert all(0 <= link.gain_ns <= link.ns for link in links if link.gain_ns is not None)
    assert any(link.gain_ns is not None for link in links)


@pytest.mark.parametrize("job", JOBS)
def test_what_lines_tell_of_their_chains_is_told_once(job: str) -> None:
    """Of two chains that meet the rest is told of one, so that what travels does not grow with the square of the collectives."""
    pieces = analysis(job).tables.table("path_pieces")
    for _, rows in frames.split(pieces):
        for where in set(rows["where"].to_pylist()):
            own = rows.filter(pa.array(frames.equals(rows, "where", where)))
            begin, end = (frames.ints(own, column) for column in ("start_ns", "end_ns"))
            # But for the pauses before parts, which lie beside the GPU's work.
            assert (end - begin).sum() <= 1.1 * total(union(begin, end))


def test_a_slow_gpu_is_the_path_until_the_others_take_over() -> None:
    path = path_of("multirank/gpu_straggler.slow")
    on_late = sum(one.ns for one in path.kinds if one.rank == 2)
    assert on_late >= 0.8 * path.ns
    largest = path.links[0]
    assert (largest.rank, largest.kind) == (2, "compute")
    # All its kernels of that name would go, and those that the other ranks run as well then set the pace.
    assert largest.gain_ns is not None and 0.5 * largest.ns < largest.gain_ns < 0.9 * largest.ns


def test_a_slow_link_is_a_transfer_and_no_rank() -> None:
    path = path_of("multirank/slow_link.slow")
    largest = path.links[0]
    assert (largest.rank, largest.device, largest.kind) == (None, None, TRANSFER)
    assert largest.ns >= 0.8 * path.ns


def test_uneven_stages_are_a_path_over_both_neighbours() -> None:
    path = path_of("multirank/pipeline_bubble.slow")
    ranks = {one.rank for one in path.kinds if one.ns >= 0.1 * path.ns}
    assert ranks >= {0, 1, 2, 3}


def test_jitter_gives_little_on_any_one_rank() -> None:
    """What each of several ranks costs now and then is not gained by repairing one of them."""
    path = path_of("jobs/ddp_random_jitter.slow")
    largest = max(path.links, key=lambda link: link.ns)
    assert largest.ns < 0.8 * path.ns


def test_of_many_steps_the_last_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = path_of("jobs/ddp_loader_late.slow")
    for module in (critical_path, line_paths):
        monkeypatch.setattr(module, "MOST_STEPS", 1)
    last = analyze_parts(parts_of(load(FIXTURES / "jobs/ddp_loader_late.slow"))).result.critical_path
    assert last is not None and (whole.step_count, last.step_count) == (3, 1)
    assert last.ns < whole.ns
    assert (last.links[0].kind, last.links[0].rank) == (whole.links[0].kind, whole.links[0].rank)
    gain = last.links[0].gain_ns
    assert gain is not None and gain > 0.8 * last.links[0].ns


def test_of_one_rank_alone_communication_is_a_link_with_its_waiting() -> None:
    """Nobody knows how long the others let it wait."""
    path = path_of("multirank/gpu_straggler.slow/rank0.pt.trace.json.xz")
    largest = path.links[0]
    assert (largest.rank, largest.kind) == (0, "exposed_communication")
    assert "communication, waiting included" in render_text(
        analysis("multirank/gpu_straggler.slow/rank0.pt.trace.json.xz").result
    )


def test_the_text_says_whose_each_link_is() -> None:
    text = render_text(analysis("multirank/gpu_straggler.slow").result)
    assert "WHAT SETS THE LENGTH OF A STEP: 44.4 ms a step, the mean of 2" in text
    assert "rank 2: compute: nvjet_sm90_tst_256x128" in text


def test_the_lane_lies_above_all_ranks() -> None:
    found = analysis("multirank/pipeline_bubble.slow")
    tables = ReportTables(found.parts, Config(), found.tables)
    ahead = {0: 0, 1: 0, 2: 0, 3: 0}
    layout = draft_timeline(tables, lambda rank: f"rank {rank}", found.result.findings[0].evidence, ahead)
    top, *rest = layout.groups
    assert (top.label, top.device, [lane.label for lane in top.lanes]) == ("job", None, ["critical path"])
    assert all(lane.label != "critical path" for group in rest for lane in group.lanes)
    (row,) = top.slices
    names = layout.names.all()
    said = {names[number] for number in row.name.tolist()}
    assert any(name.startswith("rank 3: compute") for name in said) and any(
        name.startswith("transfer: send") for name in said
    )
    place = layout.place(found.result.findings[0].evidence[0])
    assert place is None or layout.groups[place.group].device is not None
