"""What a kind of evidence may do beside being read: be beside several traces, tell whose it is by what it holds, add to the tables of a
trace, and say what it shows. The kind is the log of power of docs/evidence.md, with more in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evidence.test_evidence import Cli, rules, trace
from tests.support.evidence_folder import assemble
from tests.support.strangers import install, power_log
from traceanalyzer.evidence.placing import Whereabouts, place, places

ENRICH = """
import pyarrow as pa
from traceanalyzer.columns import frames
from traceanalyzer.model.schema import COUNTERS

def enrich(self, own, trace, on_clock):
    samples = own.table("power_samples")
    rows = {"rank": samples["rank"], "time_ns": samples["time_ns"], "device": pa.repeat(0, len(samples)), "value": samples["watts"]}
    names = {"metric": pa.array(["power"] * len(samples)), "unit": pa.array(["W" if on_clock else "?"] * len(samples))}
    empty = {name: pa.nulls(len(samples)) for name in COUNTERS.schema.names if name not in {**rows, **names}}
    made = pa.table({**rows, **names, **empty}).select(COUNTERS.schema.names).cast(COUNTERS.schema)
    return {"counters": frames.concatenated([trace.table("counters"), made])}

PowerLog.enrich = enrich
"""


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Makes a program that finds the kind with some more lines."""

    def make(lines: str) -> Cli:
        site = install(tmp_path / "site", "evidence")
        kind = site / "power_log" / "__init__.py"
        kind.write_text(f"{kind.read_text()}\n{lines}\n")
        (tmp_path / "work").mkdir()
        return Cli(site, tmp_path / "work")

    return make


def test_a_file_that_spans_traces_is_beside_all_that_it_may_be_of():
    def of(rank=None, host="n", gpu="a", span=(0, 10)):
        return Whereabouts(rank, frozenset([host]), frozenset(), frozenset([gpu]), span)

    log = Whereabouts(None, frozenset(["n"]), frozenset(), frozenset("ab"), (0, 5))
    assert places(log, [of(0), of(1, gpu="b"), of(2, gpu="c"), of(3, host="m"), of(4, span=(0, 9))]) == [0, 1, 4]
    assert place(log, [of(0), of(1, gpu="b")]) is None
    assert places(Whereabouts(), [of(0)]) == []
    assert places(Whereabouts(epoch_ns=(8, 12)), [of(0), of(1, span=(11, 12)), of(2, span=(13, 14))]) == [0, 1]


def test_a_log_of_a_node_is_beside_each_rank(made):
    cli = made("PowerLog.spans = True")
    for rank in (0, 1):
        trace(cli.folder / f"r{rank}.json", rank)
    power_log(cli.folder / "power.log")
    found = cli.result("r0.json", "r1.json", "power.log")
    assert [(one["rank"], one["placed_by"]) for one in found["evidence"]] == [
        (0, "overlap in time"),
        (1, "overlap in time"),
    ]
    assert sorted(one["scope"]["rank"] for one in found["findings"] if one["rule"] == "POW001") == [0, 1]


@pytest.mark.parametrize("fits, at", [("True", [0]), ("False", [None]), ("None", [None])])
def test_what_a_file_holds_may_tell_whose_it_is(made, fits, at):
    cli = made(f"PowerLog.fits = lambda self, own, trace: {fits} if trace.table('gpu_ops').num_rows else None")
    trace(cli.folder / "trace.json", base=None)
    power_log(cli.folder / "power.log")
    (one,) = cli.result("trace.json", "power.log")["evidence"]
    assert [one["rank"]] == at and bool(one["placed_by"]) == (at == [0])


def test_of_another_run_is_not_beside_it_whatever_its_marks_say(made):
    cli = made("PowerLog.fits = lambda self, own, trace: False")
    trace(cli.folder / "trace.json", 0)
    power_log(cli.folder / "power.log", "rank=0")
    (one,) = cli.result("trace.json", "power.log")["evidence"]
    assert one["placed_by"] is None and "another run" in one["note"]


def test_what_a_file_adds_is_in_the_tables_of_its_trace(made):
    cli = made(ENRICH)
    trace(cli.folder / "trace.json", 0)
    power_log(cli.folder / "power.log", "rank=0")
    code, _, err = cli.told("export", "trace.json", "power.log", "--format", "perfetto", "-o", "both.json")
    assert code == 0, err
    assert (cli.folder / "both.json").read_text().count('"W":90') == 20
    plain = cli.result("trace.json")["devices"]
    assert cli.result("trace.json", "power.log")["devices"] == plain


def test_an_enriched_table_must_be_one_of_traces(made):
    cli = made("PowerLog.enrich = lambda self, own, trace, on_clock: {'power_samples': own.table('power_samples')}")
    trace(cli.folder / "trace.json", 0)
    power_log(cli.folder / "power.log", "rank=0")
    code, _, err = cli.told("analyze", "trace.json", "power.log")
    assert code == 2 and "'power_log' gives 'power_samples', which is no event table" in err


def test_what_it_shows_is_said_where_nothing_was_found(made):
    cli = made("PowerLog.headline = lambda self, tables: 'The GPU drew what it may'")
    power_log(cli.folder / "power.log", "rank=0", watts=500)
    found = cli.result("power.log")
    assert (rules(found), found["verdict"]["headline"]) == ([], "The GPU drew what it may.")
    trace(cli.folder / "trace.json", 0)
    assert cli.result("trace.json", "power.log")["verdict"]["headline"].endswith(" The GPU drew what it may.")
    power_log(cli.folder / "power.log", "rank=0", watts=90)
    assert "what it may" not in cli.result("trace.json", "power.log")["verdict"]["headline"]


def test_what_is_judged_alone_has_no_time_on_the_clock_of_a_trace(made):
    cli = made("")
    assemble(cli.folder / "run", "memory_snapshot")
    found = cli.result("run")
    (memory,) = (one for one in found["evidence"] if one["kind"] == "memory_snapshot")
    (growth,) = (one for one in found["findings"] if one["rule"] == "MEM005")
    assert memory["placed_by"] is None and growth["evidence"]
    assert {(one["start_ns"], one["end_ns"]) for one in growth["evidence"]} == {(0, 0)}
    code, _, err = cli.told("export", "run", "--format", "perfetto", "-o", "both.json")
    assert code == 0 and "MEM005" not in (cli.folder / "both.json").read_text(), err
    (snapshot,) = (cli.folder / "run").glob("*.snapshot.*")
    (growth,) = (one for one in cli.result(snapshot)["findings"] if one["rule"] == "MEM005")
    assert all(one["end_ns"] for one in growth["evidence"])


def test_what_was_met_in_a_file_beside_a_trace_is_no_fault_of_the_trace(made):
    cli = made("")
    trace(cli.folder / "trace.json", 0)
    log = power_log(cli.folder / "power.log", "rank=0", watts=500)
    log.write_text(log.read_text() + "cut\n")
    found = cli.result("trace.json", "power.log")
    (note,) = (one for one in found["health"] if "power log" in one["message"])
    assert (note["code"], note["severity"]) == ("TRC001", "info")
    assert "TRC001" not in rules(found)
