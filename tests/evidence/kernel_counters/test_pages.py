"""Pages of Nsight Compute in all their forms give the same columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.evidence.kernel_counters.pages import (
    FIXTURES,
    SOL,
    USUAL,
    details,
    launch,
    profiles,
    quoted,
    raw,
    read,
    write,
)
from traceanalyzer.evidence.kernel_counters import KIND
from traceanalyzer.evidence.kernel_counters.reading.collected import MOST_ALIKE, function_of, without_unnamed
from traceanalyzer.evidence.kernel_counters.reading.numbers import decimal_mark, number, scale
from traceanalyzer.ingest.bytes.source import source_of


def usual(row: dict[str, object]) -> None:
    assert row["function"] == "scale"
    assert (row["pid"], row["device"], row["compute_capability"]) == (7, 0, 9.0)
    assert (row["grid_x"], row["grid_y"], row["block_x"], row["blocks"], row["threads"]) == (24, 2, 128, 48, 128)
    assert row["sm"] == pytest.approx(0.125)
    assert row["memory"] == row["dram"] == pytest.approx(0.8525)
    assert row["profiled_time"] == pytest.approx(1_234_500)
    assert row["dram_rate"] == pytest.approx(2.85e12)
    assert row["waves"] == 2.5


def test_details(tmp_path: Path) -> None:
    usual(launch(write(tmp_path, details())))


def test_host_and_process_names_are_not_kept(tmp_path: Path) -> None:
    sink, marks = read(write(tmp_path, details()))
    assert "10.1.2.3" not in str(sink.rows("counted_launches"))
    assert marks.host is None


@pytest.mark.parametrize(
    "before",
    [
        '==PROF== Connected to process 7 (/usr/bin/app)\nepoch 1, loss "0.5\n==PROF== Profiling "scale" - 0: 0%....100% - 8 passes\n',
        "\ufeff",
        "Kernel Name, and other words of the program\n",
    ],
)
def test_words_before_the_header(tmp_path: Path, before: str) -> None:
    usual(launch(write(tmp_path, before + details())))


def test_much_is_printed_before_the_header(tmp_path: Path) -> None:
    text = "==PROF== Connected to process 7\n" + "step 1 of many\n" * 20_000
    usual(launch(write(tmp_path, text + details())))


def test_windows_lines_and_words_between(tmp_path: Path) -> None:
    lines = details().splitlines()
    text = "\r\n".join([*lines[:3], "loss 0.5", "==PROF== Disconnected from process 7", *lines[3:], ""])
    sink, _ = read(write(tmp_path, text))
    usual(sink.rows("counted_launches")[0])
    assert not sink.notes


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("ns", "1,234,500"),
        ("nsecond", "1234500"),
        ("usecond", "1,234.5"),
        ("ms", "1.2345"),
        ("msecond", "1.2345"),
        ("second", "0.0012345"),
    ],
)
def test_units_of_time(tmp_path: Path, unit: str, value: str) -> None:
    rows = [*(one for one in USUAL if one[1] != "Duration"), (SOL, "Duration", unit, value)]
    usual(launch(write(tmp_path, details(rows))))


def test_decimal_commas(tmp_path: Path) -> None:
    rows = [(section, name, unit, value.translate(str.maketrans(",.", ".,"))) for section, name, unit, value in USUAL]
    usual(launch(write(tmp_path, details(rows))))
    spaced = [(section, name, unit, value.replace(".", " ")) for section, name, unit, value in rows]
    usual(launch(write(tmp_path, details(spaced))))


def test_semicolons(tmp_path: Path) -> None:
    """As a spreadsheet saves it again in such a locale."""
    text = details().replace('","', '";"').replace('","', '";"')
    usual(launch(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("1,234.5", ".", 1234.5),
        ("1.234,5", ",", 1234.5),
        ("13,79", ",", 13.79),
        ("9.264.207", ",", 9264207.0),
        ("1\u202f234,5", ",", 1234.5),
        ("1'234.5", ".", 1234.5),
    ],
)
def test_marks_of_decimals(text: str, mark: str, value: float) -> None:
    assert decimal_mark([text]) == mark
    assert number(text, mark) == value


@pytest.mark.parametrize("text", ["nan", "inf", "", "n/a", "PolicySpread", "(2, 66, 1)", "1e999"])
def test_no_numbers(text: str) -> None:
    assert number(text, ".") is None


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        *[("%", 0.01), ("Ghz", 1e9), ("cycle/nsecond", 1e9), ("cycle/usecond", 1e6), ("Kbyte/block", 1e3)],
        *[
            ("Gbyte/second", 1e9),
            ("byte/ns", 1e9),
            ("register/thread", 1.0),
            ("", 1.0),
            ("sector/ms", 1e3),
            ("warp", 1.0),
        ],
    ],
)
def test_scales(unit: str, factor: float) -> None:
    assert scale(unit) == factor


def test_older_names_and_columns(tmp_path: Path) -> None:
    """Of releases of 2019 to 2021: no grid, block, device and rules in columns; a time; SOL SM and SM [%]."""
    for names in (("SOL SM", "SOL Memory", "SOL FB"), ("SM [%]", "Memory [%]", "SOL DRAM")):
        rows = [
            ("GPU Speed Of Light", names[0], "%", "12.50"),
            ("GPU Speed Of Light", names[1], "%", "85.25"),
            ("GPU Speed Of Light", names[2], "%", "85.25"),
            ("GPU Speed Of Light", "Duration", "nsecond", "1234500"),
            ("Launch Statistics", "Grid Size", "", "48"),
            ("Launch Statistics", "Block Size", "", "128"),
        ]
        row = launch(write(tmp_path, details(rows, without=("Block Size", "Grid Size", "Device", "CC"))))
        assert (row["sm"], row["memory"], row["dram"]) == pytest.approx((0.125, 0.8525, 0.8525))
        assert (row["blocks"], row["threads"], row["grid_x"], row["device"]) == (48, 128, None, None)


def test_metrics_by_their_own_names(tmp_path: Path) -> None:
    rows = [
        ("Command line profiler metrics", "gpu__time_duration.sum", "us", "1,234.50"),
        ("Command line profiler metrics", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "12.5"),
    ]
    row = launch(write(tmp_path, details(rows)))
    assert row["profiled_time"] == pytest.approx(1_234_500)
    assert row["sm"] == pytest.approx(0.125)


RAW = {
    "gpu__time_duration.sum": ("ms", "1.234500"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "12.500000"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "85.250000"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "85.250000"),
    "dram__bytes.sum.per_second": ("Tbyte/s", "2.850000"),
    "launch__waves_per_multiprocessor": ("", "2.50"),
    "device__attribute_display_name": ("", "A GPU"),
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("inst", "3.0"),
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": ("inst", "9.0"),
    "smsp__average_warp_latency_per_inst_issued.ratio": ("cycle", "12.0"),
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "40"),
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": ("%", "30"),
    "smsp__cycles_elapsed.avg.per_second": ("Ghz", "2.0"),
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": ("inst/cycle", "100"),
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": ("inst/cycle", "1,000"),
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": ("inst/cycle", "16,896"),
    "dram__bytes.sum.peak_sustained": ("Kbyte/cycle", "1.28"),
    "dram__cycles_elapsed.avg.per_second": ("Ghz", "2.5"),
    "derived_tempMetric4": ("", "nan"),
}


def test_raw(tmp_path: Path) -> None:
    row = launch(write(tmp_path, gzip.compress(raw(RAW).encode()), "raw.csv.gz"))
    usual(row)
    assert row["gpu_name"] == "A GPU"
    assert (row["stall"], row["stall_cycles"], row["stall_share"]) == ("barrier", 3.0, 0.25)
    assert (row["pipe"], row["pipe_share"]) == ("FMA", pytest.approx(0.4))
    assert (row["flop_kind"], row["flop_rate"]) == ("FP32", pytest.approx(2100 * 2e9))
    assert row["flop_peak"] == pytest.approx(16896 * 2 * 2e9)
    assert row["dram_peak"] == pytest.approx(1280 * 2.5e9)


def test_summary(tmp_path: Path) -> None:
    header = ["Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC", "Invocations", "Section Name"]
    header += ["Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"]
    of = ["7", "scale", "(128, 1, 1)", "(24, 2, 1)", "0", "9.0", "14"]
    rows = [[*of, section, name, unit, "0", "0", value] for section, name, unit, value in USUAL]
    row = launch(write(tmp_path, quoted([header, *rows])))
    usual(row)
    assert row["launches"] == 14


def test_two_runs_in_one_file(tmp_path: Path) -> None:
    text = details() + details(facts={"Process ID": "8", "Kernel Name": "other(int)"})
    assert [row["function"] for row in read(write(tmp_path, text))[0].rows("counted_launches")] == ["scale", "other"]


def test_rules(tmp_path: Path) -> None:
    stall = (
        "On average, each warp of this workload spends 47.3 cycles being stalled waiting for a scoreboard dependency on a L1TEX "
        "(local, global) operation. This stall type represents about 94.4% of the total average of 50.2 cycles between issuing two "
        "instructions."
    )
    rules = [
        ("HighPipeUtilization", "OPT", "FMA is the highest-utilized pipeline (87.2%) based on elapsed cycles", "", ""),
        ("CPIStall", "OPT", stall, "global", "94.31"),
    ]
    sink, _ = read(write(tmp_path, details(rules=rules)))
    (row,) = sink.rows("counted_launches")
    assert (row["pipe"], row["pipe_share"]) == ("FMA", pytest.approx(0.872))
    assert (row["stall"], row["stall_cycles"], row["stall_share"]) == ("long_scoreboard", 47.3, pytest.approx(0.944))
    assert [(one["name"], one["scope"], one["estimate"]) for one in sink.rows("counter_rules")] == [
        ("HighPipeUtilization", None, None),
        ("CPIStall", "global", pytest.approx(0.9431)),
    ]


def test_text_says_what_csv_says() -> None:
    for name in ("gemv.slow", "tail_wave.slow"):
        text, table = (read(FIXTURES / f"{name}.details.{kind}.gz")[0] for kind in ("txt", "csv"))
        same = [
            [
                {key: value for key, value in row.items() if key not in ("file", "page")}
                for row in sink.rows("counted_launches")
            ]
            for sink in (text, table)
        ]
        for one, other in zip(*same, strict=True):
            assert one == other
        known = [
            [(row["launch"], row["name"], row["scope"], row["kind"]) for row in sink.rows("counter_rules")]
            for sink in (text, table)
        ]
        # Text does not name its rules: those whose words are known are named.
        assert [row[2:] for row in known[0]] == [row[2:] for row in known[1]]
        assert [one[1] for one in known[0] if one[1]] == [two[1] for one, two in zip(*known, strict=True) if one[1]]


def test_text_of_2020_and_with_decimal_commas(tmp_path: Path) -> None:
    text = """[7] app@127.0.0.1
  scale(float*, int), 2020-Jun-10 12:00:00, Context 1, Stream 7
    Section: GPU Speed Of Light
    ---------------------------------------------------------------------- --------------- ------------------------------
    Elapsed Cycles                                                                   cycle                      9.264.207
    Memory [%]                                                                           %                          85,25
    SOL DRAM                                                                             %                          85,25
    Duration                                                                       usecond                       1.234,50
    SM [%]                                                                               %                          12,50
    ---------------------------------------------------------------------- --------------- ------------------------------
    OK    Compute and Memory are well-balanced

    Section: Launch Statistics
    ---------------------------------------------------------------------- --------------- ------------------------------
    Grid Size                                                                                                         48
    Block Size                                                                                                       128
    Waves Per SM                                                                                                    2,50
"""
    row = launch(write(tmp_path, text, "page.txt"))
    assert (row["blocks"], row["threads"], row["waves"], row["pid"]) == (48, 128, 2.5, 7)
    assert (row["sm"], row["memory"], row["profiled_time"]) == pytest.approx((0.125, 0.8525, 1_234_500))


def test_pages_of_one_run_count_once() -> None:
    pages = [FIXTURES / f"gemv.slow.{page}.gz" for page in ("details.csv", "raw.csv", "details.txt")]
    (whole,) = profiles(*pages)
    assert whole["launches"] == 2
    assert whole["flop_rate"]
    assert whole["bottleneck"].startswith("This kernel grid is too small")
    # Digits are the raw page's.
    assert whole["memory"] == profiles(pages[1])[0]["memory"] != profiles(pages[0])[0]["memory"]


def test_two_runs_of_one_process_number_count_twice(tmp_path: Path) -> None:
    slower = [
        (section, name, unit, "2,000.00" if name == "Duration" else value) for section, name, unit, value in USUAL
    ]
    (both,) = profiles(write(tmp_path, details(), "a.csv"), write(tmp_path, details(slower) + "\n", "b.csv"))
    assert both["launches"] == 2
    assert both["profiled_time"] == 2_000_000


def test_many_launches_alike_are_counted(tmp_path: Path) -> None:
    head, *rows = details().splitlines(keepends=True)
    more = MOST_ALIKE + 50
    text = head + "".join(row.replace('"0","7"', f'"{at}","7"', 1) for at in range(more) for row in rows)
    sink, _ = read(write(tmp_path, text))
    assert sum(row["launches"] for row in sink.rows("counted_launches")) == more
    assert [(note[1], note[3]) for note in sink.notes] == [("info", 50)]
    assert profiles(tmp_path / "page.csv")[0]["launches"] == more


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gemv_rows", "gemv_rows"),
        ("void at::<unnamed>::distribution<float, 4>(long, T1)", "distribution"),
        ("void unnamed>::CatArray<unnamed>::OpaqueType<2>, 64>(T1 *, unnamed>::Meta<T1>)", "CatArray"),
        ("void cutlass::Kernel2<cutlass_80_tensorop>(T1::Params)", "Kernel2"),
        ("std::enable_if<!T7, void>::type gemvx::kernel<int, 0>(T13)", "kernel"),
        ("_Z9gemv_rowsPKfS0_Pfii", "gemv_rows"),
    ],
)
def test_functions(name: str, function: str) -> None:
    assert function_of(without_unnamed(name)) == function


@pytest.mark.parametrize(
    "text",
    [
        '"Time (%)","Total Time (ns)","Name"\n"1","2","scale"\n',
        "Kernel Name,Calls\nscale,2\n",
        "Section: Introduction\nsee Kernel Name, Context 1, Stream 7\n",
        '{"Kernel Name": "x", "a__b": 1}\n',
    ],
)
def test_what_is_no_page(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert not KIND.sniff(source_of(path, path, None))
