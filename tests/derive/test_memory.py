"""Device memory: how full it gets, and steps that keep some of it."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.kineto import MAIN, PROCESS, KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog

MIB = 1 << 20


class Memory(KinetoTrace):
    """Steps of 1 ms with one kernel each, and memory events among them."""

    def __init__(self, count: int, base: int = 100 * MIB) -> None:
        super().__init__()
        self.level, self.reserved = base, base
        for n in range(count):
            self.range(f"ProfilerStep#{n}", n * 1000, n * 1000 + 990)
            self.range("aten::zeros", n * 1000 + 100, n * 1000 + 200, category="cpu_op")
            self.range("train.py(80): keep", n * 1000 + 90, n * 1000 + 210, category="python_function")
            self.op(n * 1000 + 300, n * 1000 + 900, launch=(n * 1000 + 250, n * 1000 + 260))

    def memory(self, time: float, size: int, address: int) -> Memory:
        self.level += size
        self.reserved = max(self.reserved, self.level)
        args = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0}
        args |= {"Total Allocated": self.level, "Total Reserved": self.reserved}
        self.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": PROCESS,
                "tid": MAIN,
                "ts": time,
                "args": args,
            }
        )
        return self

    def keep(self, step: int, size: int) -> Memory:
        """Allocate in the step, from aten::zeros."""
        return self.memory(step * 1000 + 150, size, 1000 + step)

    def drop(self, step: int, kept: int, size: int) -> Memory:
        """Release in the step what an earlier one kept."""
        return self.memory(step * 1000 + 500, -size, 1000 + kept)


def load(trace: KinetoTrace, tmp_path):
    return ta.load(trace.write(tmp_path / "trace.json"))


def findings(trace: KinetoTrace, tmp_path) -> list:
    return [f for f in ta.analyze(load(trace, tmp_path)).findings if f.rule in ("MEM003", "MEM004", "MEM005")]


def test_every_step_keeps_some(tmp_path):
    trace = Memory(4)
    for n in range(4):
        trace.memory(n * 1000 + 120, 50 * MIB, 7).keep(n, 16 * MIB).memory(n * 1000 + 800, -50 * MIB, 7)
    rows = Catalog(load(trace, tmp_path)).table("memory_growth").to_pylist()
    assert [row["growth"] for row in rows] == [16 * MIB] * 4 == [row["kept"] for row in rows]
    assert rows[-1]["allocated"] == 164 * MIB
    assert rows[-1]["steps_left"] == ((1 << 34) - 164 * MIB) // (16 * MIB)
    (finding,) = findings(trace, tmp_path)
    assert (finding.rule, finding.severity, finding.saving.recoverable_ns) == ("MEM005", "low", None)
    assert finding.message == (
        "Every step leaves 16 MiB more in use on GPU 0: 48 MiB in the last 3 steps, "
        "allocated by aten::zeros called from train.py:80 (keep)."
    )


def test_warm_up_grows_once(tmp_path):
    trace = Memory(5).keep(0, 300 * MIB).keep(1, 200 * MIB)
    for n in range(2, 5):
        trace.memory(n * 1000 + 120, 50 * MIB, 7).memory(n * 1000 + 800, -50 * MIB, 7)
    assert findings(trace, tmp_path) == []


def test_what_is_collected_and_released_is_no_growth(tmp_path):
    trace = Memory(6)
    for n in range(6):
        trace.keep(n, 16 * MIB)
        if n == 3:
            for kept in range(4):
                trace.drop(n, kept, 16 * MIB)
    assert findings(trace, tmp_path) == []


def test_longer_inputs_are_no_growth(tmp_path):
    """Each step releases what the one before it left, which happens to be smaller each time."""
    trace = Memory(5).keep(0, 10 * MIB)
    for n in range(1, 5):
        trace.keep(n, (10 + 5 * n) * MIB).drop(n, n - 1, (5 + 5 * n) * MIB)
    rows = Catalog(load(trace, tmp_path)).table("memory_growth").to_pylist()
    assert all(row["growth"] > 0 for row in rows)
    assert findings(trace, tmp_path) == []


def test_a_few_numbers_in_a_log(tmp_path):
    trace = Memory(6)
    for n in range(6):
        trace.keep(n, 512)
    assert findings(trace, tmp_path) == []


@pytest.mark.parametrize(("size", "rules"), [(15 << 30, ["MEM003"]), (8 << 30, [])])
def test_a_device_that_is_nearly_full(tmp_path, size, rules):
    trace = Memory(3).memory(100, size, 5)
    assert [f.rule for f in findings(trace, tmp_path)] == rules


def test_reserved_and_not_in_use_at_the_peak(tmp_path):
    trace = Memory(3)
    trace.reserved = 12 << 30
    trace.memory(100, 4 << 30, 5).memory(200, -(4 << 30), 5)
    (row,) = Catalog(load(trace, tmp_path)).table("memory_stats").to_pylist()
    assert (row["peak_reserved"], row["peak_allocated"]) == (12 << 30, (4 << 30) + 100 * MIB)
    assert row["unused"] == row["peak_reserved"] - row["peak_allocated"]
    assert [f.rule for f in findings(trace, tmp_path)] == ["MEM004"]


def test_host_memory_is_no_device_memory(tmp_path):
    trace = Memory(4)
    for n in range(4):
        trace.keep(n, 16 * MIB)
    for event in trace.events:
        if event["name"] == "[memory]":
            event["args"] |= {"Device Type": 0, "Device Id": -1}
    assert findings(trace, tmp_path) == []


def test_without_events_the_rules_do_not_apply(tmp_path):
    result = ta.analyze(load(Memory(3), tmp_path))
    outcomes = {r.rule: r.outcome for r in result.rules}
    assert {outcomes[rule] for rule in ("MEM003", "MEM004", "MEM005")} == {"not_applicable"}


@needs_corpus
@pytest.mark.parametrize(("name", "rules"), [("slow", ["MEM005"]), ("fixed", [])])
def test_leak_growth(name, rules):
    result = ta.analyze(ta.load(CORPUS / f"kineto/leak_growth.{name}.pt.trace.json.gz"))
    assert [f.rule for f in result.findings if f.rule in ("MEM003", "MEM004", "MEM005")] == rules


def test_only_the_driver_was_recorded(tmp_path):
    """Then its allocations add up to what is reserved, and nobody knows how much of it is in use."""
    trace = Memory(4)
    for n in range(4):
        trace.keep(n, 4 << 30)
    for event in trace.events:
        if event["name"] == "[memory]":
            del event["args"]["Total Allocated"], event["args"]["Total Reserved"]
    (row,) = Catalog(load(trace, tmp_path)).table("memory_stats").to_pylist()
    assert (row["peak_reserved"], row["peak_allocated"], row["unused"]) == (16 << 30, None, None)
    assert [f.rule for f in findings(trace, tmp_path)] == ["MEM003", "MEM005"]
