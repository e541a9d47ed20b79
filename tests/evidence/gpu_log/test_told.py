"""What a log alone says: the scorecard, the GPU that stands out, what held clocks down; and what doctor and compare say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.evidence.gpu_log import logs
from tests.evidence.gpu_log.logs import LOGS, write
from tests.support.strangers import Program
from traceanalyzer.analysis import Analysis, analyze_parts
from traceanalyzer.analysis.parts import parts_of
from traceanalyzer.render.text import render_text
from traceanalyzer.result.sections import Grid, Levels, Section, Words


def analysis(path: Path) -> Analysis:
    return analyze_parts(parts_of(ta.load(path)))


def section(found: Analysis) -> Section:
    (one,) = found.sections
    return one


def headline(tmp_path: Path, text: str, name: str = "gpu.csv") -> str:
    return ta.analyze(ta.load(write(tmp_path, name, text))).verdict.headline


HELD = {
    "heat": ({"sm": 900, "reasons": 0x28, "temp": 91}, "high", "is held down by heat (thermal slowdown, 0x20 or 0x40)"),
    "heat now and then": ({"sm": 1_900, "reasons": 0x40, "temp": 85}, "medium", "and up to 85 °C"),
    "the power brake": ({"sm": 700, "reasons": 0x88}, "high", "is held down by the power brake of the hardware (0x80)"),
    "a slowdown": ({"sm": 700, "reasons": 0x8}, "high", "a slowdown of the hardware (0x8)"),
    "clocks that are set": ({"sm": 1_200, "reasons": 0x2}, "low", "because clocks are set"),
    "the power cap": ({"sm": 1_300, "reasons": 0x4}, "info", "power-capped, which is normal for such load"),
}


@pytest.mark.parametrize("what", HELD)
def test_what_holds_clocks_down(tmp_path, what):
    values, level, words = HELD[what]
    (finding,) = ta.analyze(ta.load(write(tmp_path, "gpu.csv", logs.smi(logs.rows(**values))))).findings
    assert (finding.rule, finding.severity) == ("PWR001", level) and words in finding.message
    assert finding.saving.recoverable_ns is None


def test_a_limit_that_was_lowered(tmp_path):
    text = logs.smi(logs.rows(sm=1_100, reasons=0x4, power=399.5, limit=400.0))
    text = (
        "\n".join(
            line + (", power.default_limit [W]" if not n else ", 700.00 W") for n, line in enumerate(text.splitlines())
        )
        + "\n"
    )
    (finding,) = ta.analyze(ta.load(write(tmp_path, "gpu.csv", text))).findings
    assert finding.severity == "low" and "below the 700 W" in finding.message


def test_low_clocks_without_reasons_name_none(tmp_path):
    columns = [name for name in logs.ALL if name not in ("reasons", "limit")]
    text = headline(tmp_path, logs.smi(logs.rows(sm=1_200), columns))
    assert "runs at a median of 1,200 of 1,980 MHz under load" in text and "does not say what holds it down" in text
    columns = [name for name in logs.ALL if name != "reasons"]
    assert "at its limit of power" in headline(tmp_path, logs.smi(logs.rows(sm=1_200, power=698.5), columns))


def test_an_idle_gpu_that_clocks_down_is_no_fault(tmp_path):
    result = ta.analyze(ta.load(write(tmp_path, "gpu.csv", logs.smi(logs.rows(util=0, sm=345, reasons=1, gen=1)))))
    assert not result.findings and "is idle in the whole log" in result.verdict.headline
    assert {one.outcome for one in result.rules} == {"could_not_judge"}


LINKS = {
    "half the lanes": ({"width": 8}, "runs at 8 of 16 lanes under load"),
    "an older generation": ({"gen": 3}, "runs at generation 3 of 5 under load"),
    "both": ({"gen": 4, "width": 4}, "generation 4 of 5 and 4 of 16 lanes"),
}


@pytest.mark.parametrize("what", LINKS)
def test_a_link_that_is_degraded(tmp_path, what):
    values, words = LINKS[what]
    (finding,) = ta.analyze(ta.load(write(tmp_path, "gpu.csv", logs.smi(logs.rows(**values))))).findings
    assert (finding.rule, finding.severity) == ("PWR003", "medium") and words in finding.message


def test_the_gpu_of_a_node_that_stands_out(tmp_path):
    lazy = logs.smi(logs.rows(gpus=8, util=lambda gpu: 40 if gpu == 5 else 98))
    assert headline(tmp_path, lazy).endswith("GPU 5 stands out: it is busy 40% of the time, the median GPU 98%.")
    found = analysis(
        write(tmp_path, "gpu.csv", logs.smi(logs.rows(gpus=8, sm=lambda gpu: 1_300 if gpu == 2 else 1_900)))
    )
    blocks = section(found).blocks
    assert "GPU 2 stands out: it has its clock at 66% of the highest" in " ".join(
        one.text for one in blocks if isinstance(one, Words)
    )
    (grid,) = [one for one in blocks if isinstance(one, Grid)]
    assert [row[0] for row in grid.rows] == [f"GPU {number}" for number in range(8)]
    clocks = next(one for one in blocks if isinstance(one, Levels))
    assert len(clocks.series) == 8 and not clocks.stacked and clocks.axis == "MHz"
    idle = logs.smi(logs.rows(gpus=3, util=lambda gpu: 0 if gpu == 1 else 98))
    assert headline(tmp_path, idle).startswith(
        "2 of 3 GPUs have work and are busy 98% of the time while they have work; GPU 1 has none"
    )


def test_a_scorecard_of_one_gpu(tmp_path):
    found = analysis(write(tmp_path, "gpu.csv", logs.smi(logs.rows(util=40, used=79_000))))
    text = " ".join(render_text(found.result, found.sections).split())
    assert "GPU 0 is busy 40% of the time while it has work: less than the 80% of one that is well used." in text
    assert "Its memory is filled to 97% at most, which is nearly full. It is at most 60 °C warm." in text
    titles = [block.title for block in section(found).blocks if isinstance(block, Levels)]
    assert [title.split(" over")[0] for title in titles] == [
        "SM clock",
        "Power",
        "Temperature",
        "Utilization",
        "Memory in use",
    ]
    spans = [block.spans for block in section(found).blocks if isinstance(block, Levels)]
    assert all([mark.label for mark in one] == ["under load"] for one in spans)


def test_a_few_samples_under_load_say_little(tmp_path):
    made = logs.rows(100, util=0)
    for row in made[40:44]:
        row["util"] = 60
    said = headline(tmp_path, logs.smi(made))
    assert "under load in 4 samples of 100" in said and "fully" not in said


def test_one_moment(tmp_path):
    text = logs.dcgm(1, gpus=1)
    assert headline(tmp_path, text, "dcgm.prom").startswith(
        "GPU 0 was busy (99% of the time before) at the only moment of its log"
    )


def test_use_that_is_not_logged(tmp_path):
    result = ta.analyze(
        ta.load(write(tmp_path, "gpu.csv", logs.smi(logs.rows(), ("time", "gpu", "sm", "power", "reasons"))))
    )
    assert "does not say how busy the GPU was" in result.verdict.headline and not result.findings


def test_the_same_bytes_twice(tmp_path):
    program = Program(tmp_path, tmp_path)
    for name in ("a", "b"):
        assert program.run("report", *sorted(LOGS.glob("gemm*")), "-o", f"{name}.html").returncode == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "node0" not in (tmp_path / "a.html").read_text()


def test_doctor_gives_the_whole_command(tmp_path):
    program = Program(tmp_path, tmp_path)
    write(tmp_path, "gpu.csv", logs.smi(logs.rows(30, step_s=2), ("time", "gpu", "util", "sm")))
    said = " ".join(program.run("doctor", "gpu.csv").stdout.split())
    assert "nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu" in said and "-lms 100 > gpu.csv" in said
    assert (
        "clocks_throttle_reasons.active: what held clocks down" in said
        and "one each 2 s says nothing of what is shorter" in said
    )
    assert "UTC" not in said


def test_compare_shows_its_figures(tmp_path):
    program = Program(tmp_path, tmp_path)
    write(tmp_path, "a.csv", logs.smi(logs.rows(sm=1_900)))
    write(tmp_path, "b.csv", logs.smi(logs.rows(sm=1_000, reasons=0x20, temp=90)))
    said = " ".join(program.run("compare", "a.csv", "b.csv").stdout.split())
    assert "median SM clock under load in MHz, of the slowest GPU: 1,000 instead of 1,900 (-47.4%)" in said
    assert "highest temperature under load in °C, of the hottest GPU: 90 instead of 60" in said
    assert program.run("check", "b.csv", "--assert", "gpu_log.clock >= 1500").returncode == 1
