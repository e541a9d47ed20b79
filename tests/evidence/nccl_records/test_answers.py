"""Who is missing, in another collective, or late: dumps made by hand, given together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evidence.nccl_records.made import (
    MS,
    START,
    analysed,
    dump,
    entry,
    inspector,
    link_json,
    rounds,
    said,
    written,
)

FOUR = {"0": (0, 1, 2, 3)}


def _outcome(folder: Path, *dumps: Any, names: tuple[str, ...] = ()) -> Any:
    return analysed(written(folder / "dumps", *dumps, names=names)).result


def test_ranks_that_agree(tmp_path: Path) -> None:
    result = _outcome(tmp_path, dump(rounds()), dump(rounds(late=0.05)))
    assert result.verdict.headline == (
        "No collective is missing or mismatched, and no rank is late, on 2 ranks of 18 collectives each."
    )
    assert not [finding for finding in result.findings if finding.rule.startswith("NCL")]


@pytest.mark.parametrize("last_completed", [-1, 15])
def test_a_status_that_lags_is_no_hang(tmp_path: Path, last_completed: int) -> None:
    status = {"0": (18, -1, last_completed)}
    result = _outcome(tmp_path, dump(rounds(), status=status), dump(rounds(), status=status))
    assert "No collective is missing" in result.verdict.headline


def test_a_rank_that_never_calls(tmp_path: Path) -> None:
    waiting = [*rounds(), entry(19, at=190, state="scheduled", line=25)]
    other = rounds()
    other[-1]["time_discovered_completed_ns"] = START + 900 * MS
    result = _outcome(tmp_path, dump(waiting), dump(other))
    (message,) = said(result, "NCL001")
    assert message.startswith(
        "Rank 1 is missing: rank 0 has all_reduce 19 scheduled (train.py:25 (step)), and rank 1 ends at 18. "
    )
    assert "at least 710 ms after the first call" in message
    assert result.verdict.headline.startswith("Rank 1 is missing")
    (finding,) = result.findings
    assert (finding.severity, finding.scope.rank) == ("high", 1)


def test_a_rank_that_is_just_behind(tmp_path: Path) -> None:
    result = _outcome(tmp_path, dump([*rounds(), entry(19, at=190, state="scheduled")]), dump(rounds()))
    (finding,) = result.findings
    assert finding.severity == "medium"
    assert "does not tell a hang" in finding.message


def test_what_the_watchdog_gave_up(tmp_path: Path) -> None:
    gone = entry(19, at=190, state="started", retired=True)
    result = _outcome(tmp_path, dump([*rounds(), gone], FOUR), *(dump(rounds(), FOUR) for _ in range(3)))
    (message,) = said(result, "NCL001")
    assert message == (
        "Ranks 1-3 are missing: rank 0 has all_reduce 19 started (train.py:12 (step)), and ranks 1-3 end at 18. "
        "The watchdog gave that call up."
    )


def test_an_older_dump_misses_nothing(tmp_path: Path) -> None:
    later = [*rounds(20), entry(21, at=210, state="scheduled")]
    result = _outcome(tmp_path, dump(later), dump(rounds(18)))
    assert not said(result, "NCL001")
    row = analysed(tmp_path / "dumps").tables.table("nccl_ranks").to_pylist()[1]
    assert row["why_not"].startswith("written before the others")


def test_ranks_without_a_file_are_not_missing(tmp_path: Path) -> None:
    eight = {"0": tuple(range(8))}
    result = _outcome(tmp_path, dump(rounds(), eight), dump(rounds(), eight))
    assert not result.findings or all(not finding.rule.startswith("NCL") for finding in result.findings)
    assert "(ranks 2-7 not here)" in result.verdict.headline
    assert any("missing: 2-7" in note.message for note in result.health)


def test_one_dump_alone_tells_of_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "dumps", dump([*rounds(), entry(19, at=190, state="started")])) / "trace_rank0"
    result = analysed(path).result
    assert result.verdict.headline.startswith(
        "Could not judge who is missing or late: records of only one of its ranks are here"
    )
    assert "all_reduce 19 (started)" in result.verdict.headline


def test_two_files_of_one_rank_are_not_compared(tmp_path: Path) -> None:
    mesh = {"0": (0, 1), "7": (0,)}
    result = _outcome(tmp_path, dump(rounds(), mesh), dump(rounds(17), mesh))
    assert not said(result, "NCL001")
    assert "several files say they are of the same rank" in result.verdict.headline


def test_other_groups_are_told_apart(tmp_path: Path) -> None:
    """Numbers of one group mean nothing in another; groups of one name and other ranks are two."""
    first = {"0": (0, 1, 2, 3), "1": (0, 1)}
    second = {"0": (0, 1, 2, 3), "1": (2, 3)}
    mesh = ("1", "mesh_1")
    entries = [rounds() for _ in range(4)]
    for at, own in enumerate(entries):
        own += [
            entry(n, "broadcast" if at > 1 else "all_reduce", at=200 + n, group=mesh, record_id=17 + n)
            for n in range(1, 4)
        ]
    entries[0].append(entry(4, at=210, state="scheduled", group=mesh, record_id=21))
    entries[1][-1]["time_discovered_completed_ns"] = START + 900 * MS
    result = _outcome(tmp_path, *(dump(own, first if at < 2 else second) for at, own in enumerate(entries)))
    (message,) = said(result, "NCL001")
    assert message.startswith("Rank 1 is missing: rank 0 has all_reduce 4 of mesh_1 (ranks 0, 1) scheduled")
    assert not said(result, "NCL002")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"profiling_name": "nccl:broadcast"}, "rank 0 calls all_reduce and rank 1 broadcast"),
        (
            {"input_dtypes": ["Half"], "output_dtypes": ["Half"]},
            "rank 0 calls all_reduce with Float and rank 1 all_reduce with Half",
        ),
        (
            {"input_sizes": [[512]], "output_sizes": [[512]]},
            "rank 0 calls all_reduce with [1024] -> [1024] and rank 1 all_reduce with [512] -> [512]",
        ),
    ],
)
def test_ranks_that_do_different_things(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    other = rounds()
    other[6] |= change
    result = _outcome(tmp_path, dump(rounds()), dump(other))
    (message,) = said(result, "NCL002")
    assert message.startswith(f"Ranks do not agree on collective 7: {words}. ")
    assert "Rank 0 calls it at train.py:12 (step)" in message
    assert not said(result, "NCL001")


def test_a_skipped_collective_is_a_mismatch_and_nobody_is_missing(tmp_path: Path) -> None:
    calls = [entry(n, "all_reduce" if n % 3 else "broadcast", at=10 * n) for n in range(1, 13)]
    skipped = [entry(n, "all_reduce" if (n + (n > 4)) % 3 else "broadcast", at=10 * n) for n in range(1, 12)]
    calls[-1] |= {"state": "scheduled", "time_discovered_completed_ns": None}
    result = _outcome(tmp_path, dump(calls), dump(skipped))
    (message,) = said(result, "NCL002")
    assert "collective 5:" in message
    assert not said(result, "NCL001")


def test_uneven_parts_are_no_mismatch(tmp_path: Path) -> None:
    def calls(rank: int) -> list[dict[str, Any]]:
        uneven = {"input_sizes": [[100 + rank]], "output_sizes": [[300 - rank]]}
        root = {"input_sizes": [[64]], "output_sizes": [[64], [64]] if not rank else []}
        return [
            entry(1, "all_to_all", at=1) | uneven,
            entry(2, "gather", at=2) | root,
            entry(3, "all_gather", at=3) | {"input_sizes": [[5 + rank]], "output_sizes": [[5], [6]]},
            entry(4, "scatter", at=4) | {"input_sizes": [[8], [8]] if not rank else [], "output_sizes": [[8]]},
        ]

    assert not said(_outcome(tmp_path, dump(calls(0)), dump(calls(1))), "NCL002")


def test_a_ring_that_lost_its_beginning_is_judged_from_where_all_begin(tmp_path: Path) -> None:
    first, second = rounds(40)[20:], rounds(40)[10:]
    for one in second[:10]:
        one["profiling_name"] = "nccl:broadcast"
    result = _outcome(tmp_path, dump(first), dump(second))
    assert not said(result, "NCL001") and not said(result, "NCL002")
    assert "20 collectives each" in result.verdict.headline
    assert any("lost its beginning: the first call in it is number 21" in note.message for note in result.health)


def test_a_late_rank(tmp_path: Path) -> None:
    early = [entry(n, at=n / 10) for n in range(1, 19)]
    late = [entry(n, at=400.0 * ((n + 2) // 3) + n / 10) for n in range(1, 19)]
    for one, other in zip(early, late, strict=True):
        one["time_discovered_completed_ns"] = other["time_discovered_completed_ns"]
    result = _outcome(tmp_path, dump(early), dump(late))
    (message,) = said(result, "NCL003")
    assert message.startswith(
        "Rank 1 is late: it holds up 5 of 18 collectives (most often all_reduce, train.py:12 (step)) by 400 ms each, which rank 0 had "
        "called by then: 2 s of"
    )
    assert "is not told" in message
    assert result.findings[0].scope.rank == 1


def test_hosts_that_run_ahead_are_not_late(tmp_path: Path) -> None:
    """One host is slower than the other, and both are far ahead of their GPUs."""
    early = [entry(n, at=n / 10) for n in range(1, 61)]
    slow = [entry(n, at=2.0 * n) for n in range(1, 61)]
    for number, (one, other) in enumerate(zip(early, slow, strict=True)):
        one["time_discovered_completed_ns"] = other["time_discovered_completed_ns"] = START + (500 + 50 * number) * MS
    result = _outcome(tmp_path, dump(early), dump(slow))
    assert not said(result, "NCL003")


def test_one_long_delay_is_no_habit(tmp_path: Path) -> None:
    late = [entry(n, at=10.0 * n + (900 if n > 9 else 0)) for n in range(1, 19)]
    early = [entry(n, at=10.0 * n + (900 if n > 10 else 0)) for n in range(1, 19)]
    early[9]["time_discovered_completed_ns"] = late[9]["time_discovered_completed_ns"]
    assert not said(_outcome(tmp_path, dump(early), dump(late)), "NCL003")


def test_clocks_that_contradict_each_other_tell_nothing_of_lateness(tmp_path: Path) -> None:
    """Of two hosts whose clocks are a second apart, one completes what the other has not yet called."""
    result = _outcome(tmp_path, dump(rounds()), dump(rounds(late=1000)))
    assert not said(result, "NCL003")
    assert "how late ranks come could not be judged" in result.verdict.headline


def test_times_on_the_gpu_tell_who_waits_whatever_the_clocks_say(tmp_path: Path) -> None:
    waits = [one | {"duration_ms": 8.0} for one in rounds()]
    comes_last = [one | {"duration_ms": 0.5} for one in rounds(late=5000)]
    result = _outcome(tmp_path, dump(waits), dump(comes_last))
    (message,) = said(result, "NCL003")
    assert message.startswith("Rank 1 is late: rank 0 waits for it in 17 of 18 collectives")
    assert "typically 7.5 ms each" in message


def test_a_send_whose_receive_is_not_asked_for(tmp_path: Path) -> None:
    send = entry(18, "send 0->1", at=300, state="scheduled", is_p2p=True, p2p_seq_id=1, record_id=18)
    late = rounds()
    late[-1]["time_discovered_completed_ns"] = START + 900 * MS
    (message,) = said(_outcome(tmp_path, dump([*rounds(), send]), dump(late)), "NCL001")
    assert message.startswith("Rank 1 is missing: rank 0 has a send to rank 1 scheduled")
    receive = entry(18, "recv 1<-0", at=301, state="scheduled", is_p2p=True, p2p_seq_id=1, record_id=18)
    again = _outcome(tmp_path / "other", dump([*rounds(), send]), dump([*rounds(), receive]))
    assert not said(again, "NCL001")


def test_names_of_files_do_not_matter(tmp_path: Path) -> None:
    waiting = [*rounds(), entry(19, at=190, state="scheduled")]
    result = _outcome(tmp_path, dump(waiting), dump(rounds()), names=("zulu.pkl", "alpha.pkl"))
    (message,) = said(result, "NCL001")
    assert message.startswith("The rank of alpha.pkl is missing: the rank of zulu.pkl has all_reduce 19")


def test_the_content_tells_the_rank_before_the_name(tmp_path: Path) -> None:
    groups = [
        {"0": (0, 1, 2, 3), str(5 + at // 2): (at // 2 * 2, at // 2 * 2 + 1), str(7 + at % 2): (at % 2, at % 2 + 2)}
        for at in range(4)
    ]
    folder = written(tmp_path / "dumps", *(dump(rounds(), own) for own in groups), names=("d", "c", "b", "a"))
    result = analysed(folder).result
    assert {one.path.rsplit("/", 1)[1]: one.rank for one in result.evidence} == {"d": 0, "c": 1, "b": 2, "a": 3}


def test_dumps_without_calls_tell_how_far_ranks_came(tmp_path: Path) -> None:
    result = _outcome(
        tmp_path,
        dump([entry(19, at=190, state="scheduled", record_id=18)], status={"0": (19, -1, 18)}),
        dump([], status={"0": (18, -1, 18)}),
    )
    (message,) = said(result, "NCL001")
    assert "rank 0 has all_reduce 19 scheduled" in message and "rank 1 ends at 18" in message


def test_inspectors_lines_of_two_ranks(tmp_path: Path) -> None:
    calls = [[(n, 1 << 20, 9000 if rank == 0 else 1000) for n in range(1, 21)] for rank in range(2)]
    folder = written(
        tmp_path / "dumps", *(inspector("v4.3", own, rank) for rank, own in enumerate(calls)), names=("x.log", "y.log")
    )
    result = analysed(folder).result
    (message,) = said(result, "NCL003")
    assert message.startswith("Rank 1 is late: rank 0 waits for it in 19 of 20 collectives")


def test_a_reference_of_the_link(tmp_path: Path) -> None:
    timed = [one | {"duration_ms": 0.1} for one in rounds(sizes=(1 << 20,))]
    folder = written(
        tmp_path / "dumps",
        dump(timed),
        dump(timed),
        link_json([(1 << 20, 20.0, 50.0), (1 << 24, 100.0, 200.0)]),
        names=("trace_rank0", "trace_rank1", "nccl_tests.json"),
    )
    (row,) = analysed(folder).tables.table("nccl_link_shares").to_pylist()
    assert (row["operation"], row["gpus"], row["bytes"], row["calls"]) == ("all-reduce", 2, 4 << 20, 36)
    assert row["bus_bandwidth"] == pytest.approx((4 << 20) / 100_000)
    assert row["reference"] == pytest.approx(125.0)


def test_figures(tmp_path: Path) -> None:
    figures = analysed(written(tmp_path / "dumps", dump(rounds()), dump(rounds()))).figures
    assert {name: one.value for name, one in figures.items()} == {
        "nccl_records.late": 0,
        "nccl_records.late_share": 0.0,
        "nccl_records.mismatched": 0,
        "nccl_records.missing": 0,
    }
