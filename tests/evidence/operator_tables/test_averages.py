"""Tables of the profiler's sums: any columns, any version, in any text; and what sums tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.evidence.operator_tables.made import (
    COLUMNS,
    COPY,
    HOST,
    KERNEL,
    LAUNCH,
    MATMUL,
    ROWS,
    SYNC,
    TOTALS,
    device,
    read,
    table,
    write,
)
from tests.support.places import FIXTURES
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.operator_tables import KIND
from traceanalyzer.ingest.bytes.source import source_of

REAL = FIXTURES / "evidence" / "operator_tables" / "key_averages.txt"


def rows_of(folder: Path, text: str) -> list[dict[str, Any]]:
    sink, _ = read(write(folder / "table.txt", text))
    assert sink.notes == []
    return sink.rows("operator_averages")


def sniffs(path: Path) -> bool:
    return KIND.sniff(source_of(path, path, None))


def test_the_real_one():
    sink, marks = read(REAL)
    (totals,) = sink.rows("average_tables")
    assert (totals["device"], totals["rows"], totals["host_total"], totals["device_total"]) == (
        "CUDA",
        30,
        128333000,
        930089,
    )
    rows = {(row["name"], row["on_device"]): row for row in sink.rows("operator_averages")}
    product = rows["aten::mm", False]
    assert (product["calls"], product["self_host"], product["self_device"]) == (36, 3199000, 124226)
    assert product["flops"] == pytest.approx(3758096384)
    assert product["device_memory"] == round(15.88 * 2**20)
    assert rows["forward", True]["class"] == "range" and rows["forward", False]["class"] == "operator"
    assert rows["nvjet_sm90_tst_64x8_64x16_2x4_h_bz_NNT", True]["class"] == "kernel"
    assert rows["optimizer", False]["device_memory"] == round(-44.11 * 2**20)
    assert (sink.notes, marks.producer, marks.clock) == ([], "PyTorch profiler table", "none")


def test_the_real_one_alone():
    result = ta.analyze(ta.load(REAL))
    assert result.verdict.headline == (
        "Work on the GPU takes 930 us, of which aten::copy_ starts most (237 us, 26%); operators and calls take 128 ms of the host: "
        "sums do not tell what overlaps, so how long the GPU was idle could not be judged."
    )
    assert {one.outcome for one in result.rules} == {"clean"}


def test_what_rows_are(tmp_path):
    step = ("ProfilerStep*", *SYNC[1:6], *LAUNCH[6:10], "3")
    of_device = ("ProfilerStep*", *KERNEL[1:])
    reduce = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", *KERNEL[1:])
    found = rows_of(tmp_path, table([*ROWS, step, of_device, reduce, ("Memset (Device)", *COPY[1:])]))
    assert [row["class"] for row in found] == [
        *("operator", "kernel", "memcpy", "launch", "sync", "step", "range", "communication", "memset")
    ]


@pytest.mark.parametrize("word", ["CUDA", "XPU", "MPS", "PRIVATEUSEONE", "MTIA", "HPU"])
def test_whatever_the_device_is_called(tmp_path, word):
    text = table(
        columns=("Name", *HOST, *device(word), "# of Calls"), totals=(TOTALS[0], f"Self {word} time total: 1.5s")
    )
    sink, _ = read(write(tmp_path / "t.txt", text))
    (totals,) = sink.rows("average_tables")
    assert (totals["device"], totals["device_total"]) == (word, 1_500_000_000)
    assert sink.rows("operator_averages")[0]["self_device"] == 400_000


def test_a_table_without_a_device(tmp_path):
    path = write(tmp_path / "t.txt", table([MATMUL[:6] + MATMUL[-1:]], ("Name", *HOST, "# of Calls"), TOTALS[:1]))
    (row,) = read(path)[0].rows("operator_averages")
    assert (row["self_host"], row["self_device"], row["on_device"]) == (200_000, None, False)
    headline = ta.analyze(ta.load(path)).verdict.headline
    assert headline == "Operators and calls take 1 ms of the host; the table has no time of a GPU."


def test_columns_of_older_versions(tmp_path):
    columns = ("Name", "Self CPU total %", "Self CPU total", "CPU total %", "CPU total", "CPU time avg")
    columns += ("CUDA total %", "CUDA total", "CUDA time avg", "Number of Calls", "Input Shapes")
    row = (
        "mm",
        "10.00%",
        "12.345us",
        "20.00%",
        "1.000ms",
        "50.000us",
        "80.00%",
        "2.500s",
        "40.000us",
        "25",
        "[[2, 3], [3, 4]]",
    )
    (found,) = rows_of(tmp_path, table([row], columns, ("Self CPU time total: 1.000ms", "CUDA time total: 2.500s")))
    assert (found["self_host"], found["host_total"], found["device_total"], found["calls"]) == (
        12345,
        10**6,
        25 * 10**8,
        25,
    )
    assert found["shapes"] == "[[2, 3], [3, 4]]"


@pytest.mark.parametrize(
    "head, number", [("Total KFLOPs", 1e3), ("Total MFLOPs", 1e6), ("Total TFLOPs", 1e12), ("Total FLOPs", 1)]
)
def test_floating_point_operations_in_any_unit(tmp_path, head, number):
    rows = [(*MATMUL, "1.500"), (*KERNEL, "--")]
    found = rows_of(tmp_path, table(rows, (*COLUMNS, head)))
    assert [row["flops"] for row in found] == [1.5 * number, None]


def test_a_rate_is_no_count(tmp_path):
    """PyTorch 1.8 printed operations a second under such a name."""
    assert rows_of(tmp_path, table([(*MATMUL, "1.500")], (*COLUMNS, "GFLOPS")))[0]["flops"] is None


@pytest.mark.parametrize(
    "memory, size", [("30.65 MB", 32138854), ("-9.80 Kb", -10035), ("0 b", 0), ("1.50 Gb", 3 << 29)]
)
def test_sizes_as_versions_write_them(tmp_path, memory, size):
    found = rows_of(tmp_path, table([(*MATMUL, memory)], (*COLUMNS, "Self CUDA Mem")))
    assert found[0]["self_device_memory"] == size


@pytest.mark.parametrize("prefix", ["# ", "[rank0]: ", "2026-11-27 10:00:01,123 INFO train: ", "    ", "0: "])
def test_every_line_of_a_log_begins_with_the_same(tmp_path, prefix):
    noise = f"{prefix}step 1 loss 0.5\n"
    found = rows_of(tmp_path, noise + table(prefix=prefix) + noise)
    assert [row["name"] for row in found] == [row[0] for row in ROWS]


def test_only_the_first_line_of_a_message_has_a_prefix(tmp_path):
    text = "INFO:root:" + table()
    assert [row["self_host"] for row in rows_of(tmp_path, text)] == [200_000, 0, 0, 300_000, 500_000]


def test_colours_windows_and_wide_spaces(tmp_path):
    text = "\x1b[32m" + table().replace("\n", "\x1b[0m\r\n")
    (tmp_path / "t.txt").write_bytes(text.encode("utf-16"))
    sink, _ = read(tmp_path / "t.txt")
    assert len(sink.rows("operator_averages")) == len(ROWS)


def test_lines_without_their_outer_spaces(tmp_path):
    text = "\n".join(line.strip() for line in table().splitlines())
    assert len(rows_of(tmp_path, text)) == len(ROWS)


def test_names_with_wide_gaps_and_none(tmp_path):
    rows = [("a  name", *MATMUL[1:]), ("", *MATMUL[1:]), MATMUL]
    assert [row["name"] for row in rows_of(tmp_path, table(rows))] == ["a  name", "", "aten::mm"]


def test_stacks_take_several_lines(tmp_path):
    columns = (*COLUMNS, "Source Location")
    rows = [
        (*MATMUL, "train.py(10): step"),
        (*[""] * len(COLUMNS), "train.py(20): main"),
        [""] * len(columns),
        (*KERNEL, ""),
    ]
    found = rows_of(tmp_path, table(rows, columns))
    assert [(row["name"], row["place"]) for row in found] == [
        ("aten::mm", "train.py(10): step"),
        ("sgemm_128x64_nn", None),
    ]


def test_a_table_late_in_a_log(tmp_path):
    path = write(tmp_path / "t.log", "loss 0.5, nothing else\n" * 20_000 + table())
    assert sniffs(path) and len(read(path)[0].rows("operator_averages")) == len(ROWS)


@pytest.mark.parametrize(
    "text", ["Name  Self CPU\n", "the Name of a thing\n", "Name  # of Calls\nx  1\n", "{}\n", "loss 0.5\n" * 20_000]
)
def test_what_is_no_table(tmp_path, text):
    assert not sniffs(write(tmp_path / "t.txt", text))


class TestSeveral:
    def test_one_profile_sorted_by_other_columns_counts_once(self, tmp_path):
        path = write(tmp_path / "t.txt", table() + "\n" + table(ROWS[::-1]))
        result = ta.analyze(ta.load(path))
        assert "takes 500 us" in result.verdict.headline and "profile" not in result.verdict.headline
        assert dict(KIND.measure(_tables(path)))["launches"] == 10

    def test_before_and_after_are_two(self, tmp_path):
        after = (TOTALS[0], "Self CUDA time total: 250.000us")
        path = write(tmp_path / "t.txt", table() + "after\n" + table([MATMUL], totals=after))
        headline = ta.analyze(ta.load(path)).verdict.headline
        assert headline.startswith(
            "Work on the GPU of the first of 2 profiles takes 500 us, of which aten::mm starts most (400 us, 80%)"
        )
        sums = _tables(path).table("operator_sums").to_pylist()
        assert [(row["profile"], row["profiles"], row["device_total"]) for row in sums] == [
            (0, 2, 500_000),
            (1, 2, 250_000),
        ]

    def test_rows_told_apart_by_shapes_are_added_up(self, tmp_path):
        rows = [(*MATMUL, "[[2, 3], [3, 4]]"), (*MATMUL, "[[5, 3], [3, 4]]")]
        (row,) = (
            _tables(write(tmp_path / "t.txt", table(rows, (*COLUMNS, "Input Shapes"))))
            .table("operator_sums")
            .to_pylist()
        )
        assert (row["top_name"], row["top_time"], row["top_calls"]) == ("aten::mm", 800_000, 20)


def _tables(path: Path) -> Any:
    from traceanalyzer.analysis import parts_of
    from traceanalyzer.config import Config

    (part,) = parts_of(ta.load(path))
    from traceanalyzer.analysis.parts import with_beside

    return with_beside(part, []).catalog(Config())


class TestDamage:
    def test_one_that_breaks_off(self, tmp_path):
        text = table()
        sink, _ = read(write(tmp_path / "t.txt", text[: text.index("cudaLaunch") - 40]))
        assert [(code, severity) for code, severity, _, _ in sink.notes][-1] == ("TRC001", "medium")
        assert "breaks off" in sink.notes[-1][2]

    def test_lines_in_between(self, tmp_path):
        lines = table().splitlines()
        lines.insert(5, "another rank says hello")
        sink, _ = read(write(tmp_path / "t.txt", "\n".join(lines)))
        assert [(message[:5], count) for _, _, message, count in sink.notes] == [("lines", 1)]
        assert len(sink.rows("operator_averages")) == len(ROWS)

    @pytest.mark.parametrize("bad", ["nan", "inf", "200,000us", "1.234,5us", "1e400us", "us"])
    def test_values_that_are_none(self, tmp_path, bad):
        sink, _ = read(write(tmp_path / "t.txt", table([(*MATMUL[:2], bad, *MATMUL[3:])])))
        assert sink.rows("operator_averages")[0]["self_host"] is None
        assert [(severity, count) for _, severity, _, count in sink.notes] == [("low", 1)]

    def test_a_table_without_rows_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="without a row"):
            read(write(tmp_path / "t.txt", table([])))


def test_ranges_that_pass_for_kernels_are_not_counted(tmp_path):
    """Where the row of the host was left out, a range looks like a kernel, but takes more time than there is."""
    row = ("forward", *KERNEL[1:6], "17.395ms", "1870.27%", "17.395ms", "8.698ms", "2")
    (sums,) = _tables(write(tmp_path / "t.txt", table([row, MATMUL]))).table("operator_sums").to_pylist()
    assert (sums["kernels"], sums["top_name"]) == (None, "aten::mm")


@pytest.mark.parametrize(
    "rows, totals, headline",
    [
        (
            [],
            ("Self CPU time total: 0.000us", "Self CUDA time total: 0.000us"),
            "take 0 ns of the host; the table has no time of a GPU.",
        ),
        ([("9999999999.999s",)], ("Self CPU time total: 99999999999999.0s",), "The profiler's table has no totals."),
        ([("2.000ms",)], TOTALS, "Work on the GPU takes 500 us; operators and calls take 1 ms of the host"),
    ],
    ids=["nothing", "impossible", "a part that is more than the whole"],
)
def test_sums_that_cannot_be(tmp_path, rows, totals, headline):
    times = rows[0][0] if rows else "0.000us"
    row = tuple(times if cell.endswith("us") else cell for cell in MATMUL)
    result = ta.analyze(ta.load(write(tmp_path / "t.txt", table([row], totals=totals))))
    assert headline in result.verdict.headline
    assert [rule for rule in result.rules if rule.outcome == "error"] == []
