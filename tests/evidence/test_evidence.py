"""Evidence beside a trace and alone: the kind and the format of docs/evidence.md, installed as a stranger's packages are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kineto import KinetoTrace
from tests.support.strangers import START_NS, Program, install, kernel_table, power_log
from traceanalyzer.evidence.placing import Whereabouts, contradiction, marks_shared, place, why_not
from traceanalyzer.model.kinds import EVIDENCE, kinds_of


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return install(tmp_path_factory.mktemp("site"), "format", "evidence")


class Cli(Program):
    """Its exit code, and what it wrote."""

    def told(self, *arguments: object) -> tuple[int, str, str]:
        done = self.run(*arguments)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def cli(site, tmp_path) -> Cli:
    return Cli(site, tmp_path)


def trace(path: Path, rank: int | None = 0, base: int | None = START_NS) -> Path:
    made = KinetoTrace()
    for n in range(10):
        made.op(n * 2000, n * 2000 + 1500, launch=(n * 2000 - 20, n * 2000 - 15))
    if rank is not None:
        made.metadata["distributedInfo"] = {"rank": rank, "world_size": 2}
    if base is not None:
        made.metadata["baseTimeNanoseconds"] = base
    return made.write(path)


def rules(result: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in result["findings"]]


def test_a_log_beside_its_trace(cli):
    trace(cli.folder / "trace.json")
    power_log(cli.folder / "power.log", "host=n pid=100 rank=0")
    (one,) = cli.result("trace.json", "power.log")["evidence"]
    assert (one["kind"], one["rank"], one["rows"], one["note"]) == ("power_log", 0, 20, None)
    assert (one["placed_by"], one["clock"], one["shift_ns"]) == ("rank, overlap in time", "epoch", 0)


def test_all_ways_to_read_it_give_the_same(cli):
    (cli.folder / "run").mkdir()
    trace(cli.folder / "run" / "trace.json")
    power_log(cli.folder / "run" / "power.log", "rank=0", start_ns=START_NS + 5_000_000)
    found = cli.result("run")
    assert found["evidence"][0]["shift_ns"] == 5_000_000
    assert "POW001" in rules(found)
    code, _, err = cli.told("ingest", "run", "-o", "run.store")
    assert code == 0 and "2 files" in err
    assert cli.result("run.store") == found
    assert cli.result("run.store", "--jobs", 2) == found
    assert cli.result("run", "--jobs", 2) == found
    assert "2 of them were there already" in cli.told("ingest", "run", "-o", "run.store")[2]


def test_a_trace_alone_hears_nothing_of_kinds(cli):
    trace(cli.folder / "trace.json")
    found = cli.result("trace.json")
    assert "evidence" not in found
    assert "POW001" not in {rule["rule"] for rule in found["rules"]}


def test_evidence_alone_is_judged(cli):
    power_log(cli.folder / "power.log")
    found = cli.result("power.log")
    assert (found["inputs"], rules(found)) == ([], ["POW001"])
    assert found["verdict"]["headline"] == "The GPU drew 90 W on average, in 20 samples."
    assert cli.told("analyze", "power.log", "--fail-on", "medium")[0] == 1
    assert cli.told("report", "power.log", "-o", "p.html", "--fail-on", "high")[0] == 0
    assert "20 samples, 90 W on average" in (cli.folder / "p.html").read_text()
    power_log(cli.folder / "power.log", watts=500)
    code, out, _ = cli.told("analyze", "power.log", "--fail-on", "info")
    assert code == 0 and "nothing worth fixing" in out.lower()


@pytest.mark.parametrize("output", ["markdown", "sarif", "junit", "github", "csv", "prometheus"])
def test_every_output_takes_evidence_alone(cli, output):
    power_log(cli.folder / "power.log")
    code, out, err = cli.told("analyze", "power.log", "--format", output)
    assert code == 0 and "POW001" in out, err


def test_what_cannot_be_placed_is_judged_alone(cli):
    trace(cli.folder / "r0.json", 0)
    trace(cli.folder / "r1.json", 1)
    power_log(cli.folder / "power.log")
    found = cli.result("r0.json", "r1.json", "power.log")
    (one,) = found["evidence"]
    assert (one["placed_by"], one["clock"], one["rank"]) == (None, None, None)
    assert "several of the traces" in one["note"]
    assert any("power.log" in note["message"] and note["code"] == "TRC006" for note in found["health"])
    assert "POW001" in rules(found)
    assert {device["rank"] for device in found["devices"]} == {0, 1}


def test_a_file_of_another_rank_is_not_taken(cli):
    trace(cli.folder / "trace.json", 0)
    power_log(cli.folder / "power.log", "rank=1")
    (one,) = cli.result("trace.json", "power.log")["evidence"]
    assert one["placed_by"] is None and "of rank 1" in one["note"]


def test_two_files_of_one_kind(cli):
    trace(cli.folder / "trace.json", 0)
    power_log(cli.folder / "a.log", "rank=0")
    power_log(cli.folder / "b.log", "rank=0", watts=91)
    one, other = cli.result("trace.json", "a.log", "b.log")["evidence"]
    assert one["placed_by"] and not other["placed_by"] and "another file of its kind" in other["note"]


def test_times_that_meet_no_clock_of_the_trace(cli):
    trace(cli.folder / "trace.json", base=None)
    power_log(cli.folder / "power.log", "rank=0")
    (one,) = cli.result("trace.json", "power.log")["evidence"]
    assert (one["placed_by"], one["clock"], one["shift_ns"]) == ("rank", None, None)
    assert "on no clock" in one["note"]
    (one,) = cli.result("trace.json", "power.log", "--offset", "power.log=-1.5ms")["evidence"]
    assert (one["clock"], one["shift_ns"]) == ("--offset", -1_500_000)


def test_an_offset_of_no_file_is_refused(cli):
    trace(cli.folder / "trace.json")
    code, _, err = cli.told("analyze", "trace.json", "--offset", "power.log=1ms")
    assert code == 2 and "power.log" in err
    code, _, err = cli.told("analyze", "trace.json", "--offset", "power.log")
    assert code == 2 and "FILE=" in err


def test_doctor_says_what_it_holds(cli):
    power_log(cli.folder / "power.log", count=3)
    code, out, _ = cli.told("doctor", "power.log")
    assert code == 0 and "power samples" in out and "3 rows" in out and "power-logger --hz 100" in out


def test_doctor_counts_recordings_without_it(cli):
    trace(cli.folder / "trace.json")
    power_log(cli.folder / "power.log", "rank=0")
    told = json.loads(cli.told("doctor", "trace.json", "power.log", "--format", "json")[1])
    assert (told["job"]["recordings"], told["job"]["evidence"], told["job"]["duplicates"]) == (1, 1, [])


def test_two_logs_are_compared(cli):
    power_log(cli.folder / "a.log")
    power_log(cli.folder / "b.log", watts=120)
    code, out, _ = cli.told("compare", "a.log", "b.log")
    assert code == 0 and "Mean power in watts: 120 instead of 90 (+33.3%)." in out
    assert (
        "| mean power in watts | 90 | 120 | +33.3% |" in cli.run("compare", "a.log", "b.log", "-f", "markdown").stdout
    )
    (figure,) = json.loads(cli.run("compare", "a.log", "b.log", "-f", "json").stdout)["figures"]
    assert (figure["name"], figure["base"], figure["new"]) == ("power_log.mean", 90, 120)
    page = cli.run("compare", "a.log", "b.log", "-f", "html").stdout
    assert '<th scope="row">mean power in watts</th><td class="n">90</td>' in page


def test_help_lists_the_kinds_that_are_installed(cli):
    said = " ".join(cli.run("doctor", "--help").stdout.split())
    kinds = ", ".join(sorted([*(kind.name for kind in kinds_of(EVIDENCE)), "power_log"]))
    assert f"Formats: kernel_csv, kineto, nsys; evidence beside traces: {kinds}." in said


def test_budgets_on_its_figures(cli):
    power_log(cli.folder / "power.log")
    assert cli.told("check", "power.log", "--assert", "power_log.mean < 100")[0] == 0
    assert cli.told("check", "power.log", "--assert", "power_log.mean < 50")[0] == 1
    trace(cli.folder / "trace.json")
    code, out, _ = cli.told("check", "trace.json", "--assert", "power_log.mean < 50")
    assert code == 3 and "without a file that tells it" in " ".join(out.split())


def test_a_log_without_samples_is_refused(cli):
    (cli.folder / "power.log").write_text("#power-log rank=0\n")
    code, _, err = cli.told("analyze", "power.log")
    assert code == 2 and err.count("\n") == 1 and "without samples" in err


def test_a_format_of_a_package(cli):
    (cli.folder / "run").mkdir()
    kernel_table(cli.folder / "run" / "kernels.csv")
    (cli.folder / "run" / "other.csv").write_text("a,b\n1,2\n")
    found = cli.result("run")
    assert [one["format"] for one in found["inputs"]] == ["kernel_csv"]
    assert found["devices"][0]["compute_ns"] == 4_000_000
    code, _, err = cli.told("analyze", "run/other.csv")
    assert code == 2 and "a table of kernels (CSV)" in err
    code, out, _ = cli.told("doctor", "run")
    assert code == 0 and "kernel-logger --calls" in out and "kernel-logger --steps" in out
    assert not any(word in out for word in ("torch", "nsys", "operator links", "Python stacks"))


HERE = Whereabouts(
    rank=0, hosts=frozenset("a"), pids=frozenset([7]), gpus=frozenset(["GPU-1"]), epoch_ns=(10**18, 10**18 + 10**9)
)
OTHER = Whereabouts(
    rank=1, hosts=frozenset("b"), pids=frozenset([7]), gpus=frozenset(["GPU-2"]), epoch_ns=(10**18, 10**18 + 10**9)
)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (Whereabouts(rank=1), 1),
        (Whereabouts(hosts=frozenset("a"), pids=frozenset([7])), 0),
        (Whereabouts(pids=frozenset([7])), None),  # of either host
        (Whereabouts(gpus=frozenset(["GPU-2"])), 1),
        (Whereabouts(epoch_ns=(10**18, 10**18 + 1)), None),
        (Whereabouts(), None),
        (Whereabouts(rank=2), None),
        (Whereabouts(rank=0, gpus=frozenset(["GPU-2"])), None),  # one mark contradicts the other
        (Whereabouts(rank=0, epoch_ns=(2 * 10**18, 2 * 10**18 + 1)), None),
    ],
)
def test_whose_it_is(own, told):
    assert place(own, [HERE, OTHER]) == told
    if told is None:
        assert why_not(own, [HERE, OTHER])
    else:
        assert marks_shared(own, [HERE, OTHER][told])


def test_one_trace_is_not_reason_enough():
    assert place(Whereabouts(), [HERE]) is None
    assert place(Whereabouts(epoch_ns=(10**18, 10**18 + 1)), [HERE]) == 0
    assert contradiction(Whereabouts(), HERE) is None
