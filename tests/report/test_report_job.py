"""The job section of the page: who is late, step by step, the collectives; and a page for 512 ranks."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from report_sample import HOSTILE, Sample, rows, sample

from tests.support.job_results import MS, job_result
from traceanalyzer.report.charts.heat import MOST_COLUMNS, MOST_ROWS, heat_charts, step_matrix
from traceanalyzer.report.html import render_html
from traceanalyzer.report.timeline.selection import ranks_to_show
from traceanalyzer.report.timeline.timeline import build_timeline
from traceanalyzer.result.document import Evidence, Result, Scope
from traceanalyzer.result.gpus import notable_gpus
from traceanalyzer.result.job import StepMatrix
from traceanalyzer.result.job_shape import AxisTime, HostTime, PipelineShape, StageTime
from traceanalyzer.result.ranks import rank_list


def without_scripts(page: bytes) -> str:
    return re.sub(r"<script.*?</script>", "", page.decode(), flags=re.S)


class Tables(HTMLParser):
    """The cells of every table by its id, row by row, as text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self._inside = False
        self.feed(without_scripts(page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._inside = True
            self._rows = self.tables.setdefault(dict(attrs).get("id") or dict(attrs).get("aria-labelledby") or "", [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "table"

    def handle_data(self, data: str) -> None:
        if self._inside and self._rows and self._rows[-1]:
            self._rows[-1][-1] = (self._rows[-1][-1] + data).replace("\xa0", " ").strip()


def section(page: bytes, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', page.decode(), re.S)
    assert found
    return found[0]


def text_of(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", markup).replace("&#39;", "'").split())


def large(steps: int = 40) -> Result:
    return job_result(512, late=300, steps=steps, pieces=20)


def shaped(ranks: int, steps: int = 3) -> Result:
    """A job with what is said of its shape: lines of its steps, kinds of parallelism, two hosts, and two stages."""
    result = job_result(ranks, steps=steps)
    assert result.job
    lines = {"compute": 20, "exposed_memcpy": 3}
    rows = [
        replace(row, lines_ns={line: [(ms + number) * MS for _ in range(steps)] for line, ms in lines.items()})
        for number, row in enumerate(result.job.steps.rows)
    ]
    axes = [
        AxisTime("tensor parallel", ranks, 300 * MS, 200 * MS, 100 * MS, 0.3, 0.2, 0.1, 9 * MS, 6 * MS, 3 * MS),
        AxisTime("unknown", 2, 10 * MS, None, None, 0.01, None, None, MS, None, None),
    ]
    half = ranks // 2
    hosts = [
        HostTime(
            number + 1,
            [*range(number * half, (number + 1) * half)],
            half,
            1000 * MS,
            400 * MS,
            300 * MS,
            200 * MS,
            300 * MS,
            waited,
        )
        for number, waited in enumerate((0, 90 * MS))
    ]
    stages = [StageTime(rank, 0, 10 * MS, (9 - 6 * rank) * MS, 6 * rank * MS, MS) for rank in range(2)]
    pipeline = PipelineShape(2, 6, 0.142857, None, 0.4, 0.3, True, 1.0, 7 * MS, stages)
    steps_of = StepMatrix(result.job.steps.names, rows, ["idle.os"])
    return replace(result, job=replace(result.job, steps=steps_of, axes=axes, hosts=hosts, pipeline=pipeline))


def test_the_shape_of_a_job_is_said_and_stands_in_tables() -> None:
    page = render_html(shaped(4), None)
    tables, said = Tables(page).tables, text_of(section(page, "job"))
    assert tables["axes-table"][1:] == [
        ["tensor parallel", "4", "30.0%", "20.0%", "10.0%", "6 ms", "3 ms"],
        ["unknown", "2", "1.0%", "not told", "1 ms of both"],
    ]
    assert tables["hosts-table"][2] == ["host 2", "2, 3", "2", "40.0%", "30.0%", "20.0%", "30.0%", "90 ms"]
    assert tables["stages-table"][1] == ["rank 0", "9 ms", "0 ns", "1 ms", "10 ms"]
    assert "tensor parallel 30% of the GPUs' time, 9 ms a step (20% waiting and 10% transfer)" in said
    assert "100% of the waiting is for what the slowest computes more. Equal ones would take about 7 ms a step." in said
    assert "They ran on 2 hosts; 100% of all waiting is for host 2 (ranks 2, 3)." in said


def test_any_line_of_steps_is_a_heat_map() -> None:
    heat = heat_charts(shaped(4))[0]
    assert heat.choices == ["step time", "waiting for other ranks", "compute", "exposed copies"]
    copies = heat.views[3]
    assert copies.data[0]["z"] == [[3.0 + rank] * 3 for rank in range(4)] and copies.scale == ("0 ns", "6 ms")
    assert copies.caption.startswith("Exposed copies: up to 6 ms in a step (rank 3, step 3), 4.5 ms at the median.")
    assert "no room for lines on which steps differ less: idle: system calls" in copies.caption
    page = render_html(shaped(4), None).decode()
    assert page.count('<option value="3">exposed copies</option>') == 1


def test_a_job_is_titled_by_its_folder() -> None:
    result = job_result(2)

    def titled(*paths: str, **more: object) -> str:
        inputs = [replace(one, path=path) for one, path in zip(result.inputs, paths, strict=True)]
        page = render_html(replace(result, inputs=inputs), None, **more).decode()
        found = re.search("<title>(.*)</title>", page)
        assert found
        return found[1]

    assert titled("runs/ddp/rank0.json", "runs/ddp/rank1.json") == "ddp"
    assert titled("runs/ddp/rank0.json", "runs/ddp/rank1.json", title="mine") == "mine"
    assert titled("/home/alice/run/a/rank0.json", "/home/alice/run/b/rank1.json") == "run"
    for folder in ("/home/alice", "/scratch/alice", "C:\\Users\\alice"):
        assert "alice" not in titled(f"{folder}/rank0.json", f"{folder}/rank1.json")
    assert titled("/tmp/x/two_gpus.slow/rank0.json", "/tmp/x/two_gpus.slow/rank1.json") == "two_gpus.slow"
    assert titled("rank0.json", "rank1.json") == "rank0.json and 1 more"
    assert titled("s3://bucket/ddp/rank0.json", "s3://bucket/ddp/rank1.json") == "ddp"


def test_late_ranks_are_a_table_with_units() -> None:
    page = render_html(job_result(4), None)
    tables = Tables(page).tables
    why = "computes 25.3 ms more a step than the median rank"
    late = tables["late-table"][1]
    assert late[0] == "rank 2" and late[1].startswith(why)
    assert late[2:] == ["66 of 68", "499 µs", "25.3 ms", "1.4 s", "97.0%"]
    assert tables["late-table"][2][:2] == ["rank 0", "stands idle meanwhile (host work)"]
    said = text_of(section(page, "job"))
    assert "4 of 4 ranks" in said and "data parallel over 4 (all-reduce, 896 MiB a step)" in said
    assert "clocks agree within 1 µs" in said and "Ranks wait for late ones 36% of the GPUs' time." in said


def test_the_matrix_has_a_cell_a_step() -> None:
    times, waits = heat_charts(job_result(4))
    (heat,) = times.first.data
    assert heat["x"] == ["3", "4", "5"] and heat["y"] == [f"rank {rank}" for rank in range(4)]
    assert heat["z"] == [[None, 44.0 + rank, 44.0 + rank] for rank in range(4)]
    assert "Steps take from 44 ms to 47 ms, 45.5 ms at the median. Empty cells" in times.first.caption
    assert waits.first.data[0]["z"][2] == [0, 0, 0] and waits.first.scale == ("0 ns", "21 ms")
    assert waits.first.caption.startswith(
        "GPUs wait up to 21 ms in a step, 21 ms at the median. Rank 2 waits least: not at all."
    )


def test_short_waits_have_a_scale_of_their_own() -> None:
    result = job_result(4)
    assert result.job
    rows = [replace(row, wait_ns=[MS // 10 * row.device for _ in row.wait_ns]) for row in result.job.steps.rows]
    rows[3] = replace(rows[3], wait_ns=[MS] * 3)
    steps = replace(result.job.steps, rows=rows)
    waits = heat_charts(replace(result, job=replace(result.job, steps=steps)))[1].first.data[0]
    assert (waits["zmin"], waits["zmax"]) == (0, 1)


def test_a_large_matrix_is_folded_and_says_so() -> None:
    result = job_result(3000, late=2999, steps=500)
    assert result.job
    odd = replace(result.job.steps.rows[77], step_ns=[None, 99 * MS] + [44 * MS] * 498)
    steps = replace(result.job.steps, rows=[odd if row.rank == 77 else row for row in result.job.steps.rows])
    matrix = step_matrix(replace(result, job=replace(result.job, steps=steps)))
    assert matrix and len(matrix.rows) <= MOST_ROWS and len(matrix.columns) <= MOST_COLUMNS
    assert matrix.times.shape == (len(matrix.rows), len(matrix.columns)) == matrix.waits.shape
    # A late rank keeps its row, and the longest of the steps of a cell is the one shown.
    late = matrix.rows.index("rank 2999")
    assert (matrix.waits[late] == 0).all() and (np.delete(matrix.waits, late, axis=0) == 21 * MS).all()
    assert np.nanmax(matrix.times) == 99 * MS
    assert "A column is up to 3 steps" in matrix.notes and "the longest of their step times" in matrix.notes


def test_equal_steps_look_equal() -> None:
    heat = heat_charts(job_result(2, late=1))[0].first.data[0]
    shades = [(value - heat["zmin"]) / (heat["zmax"] - heat["zmin"]) for row in heat["z"] for value in row if value]
    assert min(shades) > 0.2 and max(shades) < 0.8


@pytest.mark.parametrize("change", ["no job", "one gpu", "no steps"])
def test_where_there_is_no_matrix_there_is_none(change: str) -> None:
    result = job_result(4)
    assert result.job
    steps = result.job.steps
    rows = steps.rows[:1] if change == "one gpu" else steps.rows
    names = [] if change == "no steps" else steps.names
    job = None if change == "no job" else replace(result.job, steps=replace(steps, rows=rows, names=names))
    page = render_html(replace(result, job=job), None)
    assert b'id="chart-step-heat"' not in page and (b'id="job"' in page) == (job is not None)


def test_the_page_of_512_ranks_is_small_and_says_what_it_leaves_out() -> None:
    tables = sample()[1]
    page = render_html(large(), tables)
    assert len(page) < 4_000_000
    found = Tables(page).tables
    compute = found["spread-table"][1]
    assert compute == ["Compute", "40.0%", "rank 0", "45.6%", "90.0%", "rank 300"]
    assert found["spread-table"][3][2] == ""  # all have the same
    text = without_scripts(page)
    assert "8 of them: late ranks, those that differ most" in text
    said = text_of(text)
    assert "The same on 511 more GPUs" in said and "and on 495 more GPUs: 12 to 17% of the window" in said
    assert "The timeline shows 1 of 512 ranks: 0." in said
    assert "TRC001 0 events were cut off × 171 ranks 0, 3, 6, 9, 12, 15 and 165 more" in said
    assert len(found[""]) == 0 or "rank 511" not in str(found[""])


def test_evidence_on_a_rank_that_is_not_shown_is_text() -> None:
    result, tables = large(), sample()[1]
    start = result.findings[0].evidence[0].start_ns
    stall = replace(result.findings[0], evidence=[Evidence(300, 0, start, start + MS, "the late one")])
    page = without_scripts(render_html(replace(result, findings=[stall]), tables))
    assert "the late one" in page and "data-finding" not in page


def test_steps_of_ranks_that_are_not_shown_make_no_lanes() -> None:
    tables = sample()[1]
    steps = rows(
        "step_stats", rank=list(range(64)), device=0, index=0, name="step", method="nvtx", start_ns=0, end_ns=MS
    )
    timeline = build_timeline(Sample(**{**tables.tables, "step_stats": steps}), lambda rank: f"rank {rank} ", [])
    assert {group.rank for group in timeline.groups} == {0}


def test_clocks_are_set_by_the_collectives() -> None:
    def tables() -> Sample:
        span = {"start_ns": [1000, 1400], "end_ns": [9000, 9400]}
        return Sample(ledger_intervals=rows("ledger_intervals", rank=[0, 1], device=0, line="compute", **span))

    both = [Evidence(rank, 0, start, start + 100, "") for rank, start in ((0, 2000), (1, 2400))]
    apart, together = (build_timeline(tables(), str, [], ahead) for ahead in ({}, {0: -150, 1: 250}))
    assert [place.start for place in map(apart.place, both) if place] == [1000, 1400]
    assert [place.start for place in map(together.place, both) if place] == [1000, 1000]
    assert "clocks" in together.notes[0] and not apart.notes


def test_the_timeline_shows_late_ranks_then_those_of_the_evidence_then_the_lowest() -> None:
    result = large()
    assert ranks_to_show(result, 8) == [0, 1, 2, 3, 4, 5, 6, 300]
    stall = replace(result.findings[0], evidence=[Evidence(r, 0, 0, 1, "") for r in (400, 401, 402)])
    slow = replace(result.findings[1], scope=Scope(77, 0), evidence=[])
    chosen = replace(result, findings=[stall, slow], inputs=list(reversed(result.inputs)))
    assert [chosen.inputs[at].rank for at in ranks_to_show(chosen, 6)] == [401, 400, 300, 77, 1, 0]
    assert ranks_to_show(job_result(4), 8) == [0, 1, 2, 3]
    unknown = [replace(one, rank=None) for one in result.inputs]
    assert ranks_to_show(replace(result, inputs=unknown), 4) == [0, 1, 2, 3]


def test_the_gpus_worth_a_look_are_the_late_and_the_extreme_ones() -> None:
    result = large()
    found = notable_gpus(result, 4)
    assert 300 in found and min(result.devices, key=lambda d: d.compute_ns).rank in found and len(found) == 4
    assert notable_gpus(job_result(3), 4) == [0, 1, 2]


@pytest.mark.parametrize(
    ("ranks", "words"),
    [([3], "3"), ([1, 0], "0, 1"), ([0, 1, 2, 5], "0-2, 5"), (range(0, 20, 2), "0, 2, 4, 6, 8, 10 and 4 more")],
)
def test_ranks_are_written_as_runs(ranks: list[int], words: str) -> None:
    assert rank_list(ranks) == words


def test_hostile_names_of_ranks_files_and_steps_are_text() -> None:
    result = job_result(4)
    assert result.job
    names = [f"{HOSTILE}{n}" for n in range(3)]
    late = [replace(result.job.late_ranks[0], why=HOSTILE, doing=HOSTILE, line=HOSTILE)]
    collectives = [replace(result.job.collectives[0], kind=HOSTILE, parallelism=HOSTILE)]
    parallelism = [replace(result.job.parallelism[0], kind=HOSTILE, collectives=[HOSTILE])]
    steps = replace(result.job.steps, names=names)
    job = replace(result.job, late_ranks=late, collectives=collectives, parallelism=parallelism, steps=steps)
    inputs = [replace(one, path=f"/x/{HOSTILE}.rank{one.rank}.json") for one in result.inputs]
    page = render_html(replace(result, job=job, inputs=inputs), None)
    assert HOSTILE.encode() not in page and b"<img" not in page
    assert b"onerror=alert(1)&gt;" in page


def test_the_same_job_gives_the_same_bytes() -> None:
    assert gzip.compress(render_html(large(), None), mtime=0) == gzip.compress(render_html(large(), None), mtime=0)
