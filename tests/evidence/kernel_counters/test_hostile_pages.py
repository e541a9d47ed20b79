"""Pages that are cut, empty, of another kind or made to harm: one clear line, or a row of health for what was left out."""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.evidence.kernel_counters.pages import FIXTURES, RAW_ONE, USUAL, details, quoted, raw, read, write
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.kernel_counters import KIND
from traceanalyzer.evidence.kernel_counters.reading import content, report_file
from traceanalyzer.ingest.bytes.source import source_of


def failure(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read(path)
    said = str(error.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said


def test_no_launch(tmp_path: Path) -> None:
    head = details().splitlines()[0] + "\n"
    assert "no launch of a kernel" in failure(write(tmp_path, head))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n",
            "root",
        ),
        ("==ERROR== The application returned an error code (11).\n", "error code (11)"),
        ("==WARNING== No kernels were profiled.\n", "no launch of a kernel"),
    ],
)
def test_a_log_without_any_page(tmp_path: Path, words: str, says: str) -> None:
    assert says in failure(write(tmp_path, "==PROF== Connected to process 7\n" + words))


def test_cut_in_the_middle_of_a_row(tmp_path: Path) -> None:
    whole = details(USUAL * 2)
    for size in range(len(whole) - 90, len(whole) - 1):
        sink, _ = read(write(tmp_path, whole[:size]))
        (row,) = sink.rows("counted_launches")
        # A number that is cut off is none.
        assert row["waves"] in (None, 2.5)
        assert row["memory"] == pytest.approx(0.8525)


def test_a_raw_page_that_is_cut(tmp_path: Path) -> None:
    text = raw(RAW_ONE)
    assert "no launch" in failure(write(tmp_path, text[: len(text) - 30]))
    both = text + text.splitlines(keepends=True)[-1].replace('"0"', '"1"', 1)[:-30]
    sink, _ = read(write(tmp_path, both))
    assert [row["launch"] for row in sink.rows("counted_launches")] == [0]
    assert [note[3] for note in sink.notes] == [1]


def test_a_packed_page_that_is_cut(tmp_path: Path) -> None:
    data = (FIXTURES / "gemv.slow.raw.csv.gz").read_bytes()
    path = write(tmp_path, data[: len(data) // 2], "raw.csv.gz")
    try:
        sink, _ = read(path)
    except InputError as error:
        assert "nothing can be read" in str(error)
    else:
        assert sink.notes


def test_values_that_are_no_numbers(tmp_path: Path) -> None:
    rows = [*USUAL[1:], (*USUAL[0][:3], "many")]
    sink, _ = read(write(tmp_path, details(rows)))
    assert sink.rows("counted_launches")[0]["sm"] is None
    assert any("no numbers" in note[2] for note in sink.notes)


def test_none_of_the_counters(tmp_path: Path) -> None:
    rows = [("Command line profiler metrics", "smsp__something.sum", "", "3")]
    sink, _ = read(write(tmp_path, details(rows)))
    assert any("none of the counters" in note[2] for note in sink.notes)


def test_a_name_of_a_megabyte(tmp_path: Path) -> None:
    sink, _ = read(write(tmp_path, details(facts={"Kernel Name": "k<" + "a, " * 200_000 + "b>(int)"})))
    assert sink.rows("counted_launches")[0]["function"] == "k"


def test_a_line_without_end(tmp_path: Path) -> None:
    text = details() + '"' + "x" * (20 << 20)
    sink, _ = read(write(tmp_path, text))
    assert len(sink.rows("counted_launches")) == 1


def test_shares_beyond_one_and_below_zero(tmp_path: Path) -> None:
    rows = [(section, name, unit, "250" if unit == "%" else f"-{value}") for section, name, unit, value in USUAL]
    sink, _ = read(write(tmp_path, details(rows)))
    assert sink.rows("counted_launches")[0]["memory"] == 2.5


def test_random_bytes_after_the_header(tmp_path: Path) -> None:
    dice = random.Random(4)
    head = details().splitlines()[0].encode() + b"\n"
    for _ in range(50):
        body = bytes(dice.choices(b'",\n\r01;(x\xff%=[]', k=dice.randrange(1, 3000)))
        try:
            read(write(tmp_path, head + body))
        except InputError as error:
            assert "\n" not in str(error)


def test_too_many_launches_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceanalyzer.evidence.kernel_counters.reading.collected.MOST_LAUNCHES", 10)
    head, row, *_ = details().splitlines(keepends=True)
    text = head + "".join(row.replace('"0"', f'"{at}"', 1).replace("scale", f"scale{at}") for at in range(20))
    assert "more than 10 launches" in failure(write(tmp_path, text))


def test_a_report_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, it is an error that says what to do; in a folder with a trace it is passed over."""
    monkeypatch.setattr(content, "find_spec", lambda name: None)
    path = write(tmp_path, b"NVR\0" + bytes(100), "profile.ncu-rep")
    with pytest.raises(InputError) as error:
        ta.load(path)
    assert "pip install 'traceanalyzer[ncu]'" in str(error.value)
    assert f"ncu --import {path} --csv --page raw" in str(error.value)
    (tmp_path / "trace.json.gz").write_bytes((FIXTURES / "gemv.slow.pt.trace.json.gz").read_bytes())
    told = ta.load(tmp_path).table("health").to_pylist()
    assert any("profile.ncu-rep" in f"{row['message']} {row['example']}" for row in told)


FAKE = """
class Metric:
    def __init__(self, value, unit): self._value, self._unit = value, unit
    def value(self): return self._value
    def unit(self): return self._unit

class Action:
    NameBase_DEMANGLED = 1
    METRICS = {"gpu__time_duration.sum": (1234500, "ns"), "sm__throughput.avg.pct_of_peak_sustained_elapsed": (12.5, "%"),
        "launch__grid_dim_x": (24, ""), "launch__grid_dim_y": (2, ""), "launch__grid_dim_z": (1, ""), "launch__device_id": (0, ""),
        "launch__block_dim_x": (128, ""), "launch__block_dim_y": (1, ""), "launch__block_dim_z": (1, ""),
        "device__attribute_compute_capability_major": (9, ""), "device__attribute_compute_capability_minor": (0, ""),
        "device__attribute_display_name": ("A GPU", "")}
    def name(self, base=0): return "void ns::scale<float>(T1 *, int)"
    def metric_names(self): return list(self.METRICS)
    def metric_by_name(self, name): return Metric(*self.METRICS[name])
    def rule_results_as_dicts(self):
        return [{"rule_identifier": "SOLBottleneck", "name": "x", "section_identifier": "SpeedOfLight",
            "rule_message": {"title": "t", "message": "low compute throughput and memory", "type": 2},
            "speedup_estimation": {"type": 2, "speedup": 40.0}}]

class Range:
    def num_actions(self): return 2
    def action_by_idx(self, at): return Action()

class Context:
    def num_ranges(self): return 1
    def range_by_idx(self, at): return Range()

def load_report(path):
    WHAT
    return Context()
"""


def with_package(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up package ncu_report, and a report for it."""
    (folder / "lib").mkdir()
    (folder / "lib" / "ncu_report.py").write_text(FAKE.replace("WHAT", what))
    monkeypatch.syspath_prepend(str(folder / "lib"))
    return write(folder, b"NVR\0" + bytes(100), "profile.ncu-rep")


def test_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, _ = read(with_package(tmp_path, "pass", monkeypatch))
    rows = sink.rows("counted_launches")
    assert [row["launch"] for row in rows] == [0, 1]
    assert (rows[0]["function"], rows[0]["blocks"], rows[0]["gpu_name"], rows[0]["page"]) == (
        "scale",
        48,
        "A GPU",
        "report",
    )
    assert (rows[0]["sm"], rows[0]["profiled_time"]) == pytest.approx((0.125, 1_234_500))
    rule = sink.rows("counter_rules")[0]
    assert (rule["name"], rule["kind"], rule["scope"], rule["estimate"]) == (
        "SOLBottleneck",
        "OPT",
        "global",
        pytest.approx(0.4),
    )


@pytest.mark.parametrize("what", ["raise ValueError('no such report')", "import os; os._exit(11)", "return None"])
def test_a_report_that_cannot_be_read(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ncu --import" in failure(with_package(tmp_path, what, monkeypatch))


def test_a_report_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_file, "MOST_SECONDS", 1)
    assert "took more than 1 s" in failure(with_package(tmp_path, "import time; time.sleep(30)", monkeypatch))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_report_that_takes_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_file, "MOST_MEMORY", 1 << 30)
    assert "MemoryError" in failure(with_package(tmp_path, "x = bytearray(4 << 30)", monkeypatch))


def test_a_packed_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_package(tmp_path, "assert open(path, 'rb').read(4) == b'NVR\\0'", monkeypatch)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert KIND.sniff(source_of(path, path, None))
    assert len(read(path)[0].rows("counted_launches")) == 2


def test_a_header_of_other_columns(tmp_path: Path) -> None:
    path = write(tmp_path, quoted([["ID", "Process ID", "Kernel Name", "Source"], ["0", "7", "k", "x = 1"]]))
    assert not KIND.sniff(source_of(path, path, None))
