"""Two weeks of nightly traces of one program, as `traceanalyzer history` tells them: a noisy night, a commit and a driver."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.cli.test_cli import run
from tests.history.nightly_traces import Night, fixture, recorded
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.result.history.trend import Series, Trend
from traceanalyzer.result.history.verdicts import HARDWARE, REAL

NIGHTS, NOISY, COMMIT, DRIVER = 14, 3, 6, 10
SLOWER = 1.1
"""Of a kernel's time with the new driver."""


def nights() -> list[Night]:
    """All with gaps that are up to 1 % longer or shorter."""
    random = np.random.default_rng(22)
    made = []
    for number in range(NIGHTS):
        off, noise = 1 + float(random.uniform(-0.01, 0.01)), 1.15 if number == NOISY else 1.0
        driver, kernels = (13010, SLOWER) if number >= DRIVER else (13000, 1.0)
        made.append(Night(off * noise, kernels * noise, 0.08 if number >= COMMIT else 0.0, driver))
    return made


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each night's trace was added with its commit when it was there."""
    folder = tmp_path_factory.mktemp("nightly")
    trace, place = fixture(), folder / "history"

    def add(number: int, night: Night) -> int:
        path = folder / f"night{number:02d}.json"
        path.write_text(json.dumps(recorded(trace, number, night)))
        code, _, _ = run(
            _Nothing(),
            "history",
            "add",
            path,
            "--to",
            place,
            "--label",
            f"commit=c{number:02d}",
            "--label",
            "branch=main",
        )
        return code

    assert reduce(lambda codes, one: codes + add(*one), enumerate(nights()), 0) == 0
    return place


class _Nothing:
    """Stands for pytest's `capsysbinary`, which a fixture of a module cannot have."""

    @staticmethod
    def readouterr() -> tuple[bytes, bytes]:
        return b"", b""


@pytest.fixture
def series(history: Path, capsysbinary) -> Series:
    code, out, err = run(capsysbinary, "history", "show", history, "--format", "json")
    assert (code, err) == (0, "")
    (found,) = msgspec.json.decode(out, type=Trend).series
    return found


def test_the_nights_are_there_in_order(history: Path) -> None:
    entries = Shelf(history).read().entries
    assert [entry.labels["commit"] for entry in entries] == [f"c{number:02d}" for number in range(NIGHTS)]
    assert all((entry.unit, entry.unit_count, entry.damage) == ("step", 3, []) for entry in entries)
    hours = np.diff([entry.time_ns for entry in entries]) / 3.6e12
    assert hours == pytest.approx(24)


def test_the_noisy_night_is_named(series: Series) -> None:
    assert series.noisy == [series.captures[NOISY]]


def test_the_commit_and_the_driver_are_told_with_their_nights(series: Series) -> None:
    told = [(series.captures.index(shift.after), shift.verdict, shift.commits) for shift in series.shifts]
    assert told == [(COMMIT, REAL, ("c05", "c06")), (DRIVER, HARDWARE, ("c09", "c10"))]
    commit, driver = series.shifts
    assert commit.low < 0.08 < commit.high
    assert "host work" in commit.reason
    assert driver.reason == "another driver (13.1 instead of 13.0)"
    assert driver.share == pytest.approx(0.6 * (SLOWER - 1), abs=0.015)
    assert series.state == HARDWARE


def test_the_text_says_all_three(history: Path, capsysbinary) -> None:
    code, out, _ = run(capsysbinary, "history", "show", history)
    assert code == 0
    words = " ".join(out.split())
    assert "real 2026-" in words and "c05 to c06" in words
    assert "hardware 2026-" in words and "another driver (13.1 instead of 13.0)" in words
    assert f"night{NOISY:02d}.json: far off its neighbours" in words


def test_looked_at_each_night_nothing_else_is_told(history: Path) -> None:
    from traceanalyzer.result.history.trend import series_of

    entries = Shelf(history).read().entries
    looked = [series_of(entries[:night]) for night in range(1, NIGHTS + 1)]
    alarms = {(one.captures.index(shift.after), shift.verdict) for one in looked for shift in one.shifts}
    assert alarms == {(COMMIT, REAL), (DRIVER, HARDWARE)}
