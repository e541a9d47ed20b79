"""Hosts and GPUs that are persistently slower at the same work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.history.nights import Case, entries_of
from traceanalyzer.render.history.fleet_text import render_fleet
from traceanalyzer.result.history.entry import Entry, Pace
from traceanalyzer.result.history.fleet import Fleet, fleet_of
from traceanalyzer.result.history.trend import trend_of
from traceanalyzer.result.history.verdicts import NOISE

STEADY = Case("nothing changes", NOISE, 0.0, lambda entry, share: entry, spread=0.005)
HOSTS = ("node1", "node2", "node3", "node4")


def fleet(entries: list[Entry]) -> Fleet:
    return fleet_of(trend_of(entries), entries)


def on_hosts(seed: int, slower: dict[str, float]) -> list[Entry]:
    """Forty nights, each on the next host."""
    found = []
    for number, entry in enumerate(entries_of(STEADY, seed)):
        host = HOSTS[number % len(HOSTS)]
        assert entry.unit_ns
        unit_ns = round(entry.unit_ns * (1 + slower.get(host, 0.0)))
        found.append(replace(entry, labels=entry.labels | {"host": host}, unit_ns=unit_ns))
    return found


def side_by_side(seed: int, slower: dict[int, float], uuids: bool = True, shift: int = 0) -> list[Entry]:
    """Jobs of eight GPUs, which are off by half a percent from night to night. Each `shift` nights they have other numbers."""
    random = np.random.default_rng(seed)
    found = []
    for number, entry in enumerate(entries_of(STEADY, seed)):
        ratios = [(1 + slower.get(gpu, 0.0)) * (1 + random.normal(0, 0.005)) for gpu in range(8)]
        first = number // shift if shift else 0
        paces = [
            Pace(f"uuid-{gpu}" if uuids else None, (gpu + first) % 8, float(ratio / np.median(ratios)))
            for gpu, ratio in enumerate(ratios)
        ]
        found.append(replace(entry, gpu_count=8, paces=paces))
    return found


def test_a_slow_host_is_named() -> None:
    found = fleet(on_hosts(1, {"node3": 0.04}))
    (slow,) = found.slow_hosts
    assert (slow.host, slow.captures, slow.others) == ("node3", 10, 30)
    assert slow.share == pytest.approx(0.04, abs=0.01) and 0 < slow.low < slow.share
    assert "SLOW HOSTS\n  node3 takes " in render_fleet(found)
    assert found.slow_gpus == []


@pytest.mark.parametrize("seed", range(10))
def test_hosts_and_gpus_that_only_vary_are_not_slow(seed: int) -> None:
    assert fleet(on_hosts(seed, {})).slow_hosts == []
    assert fleet(side_by_side(seed, {})).slow_gpus == []


@pytest.mark.parametrize("slower", [0.03, 0.1])
def test_a_slow_gpu_is_named_by_its_uuid_whatever_its_number(slower: float) -> None:
    (slow,) = fleet(side_by_side(2, {5: slower}, shift=10)).slow_gpus
    assert (slow.uuid, slow.device, slow.host, slow.beside) == ("uuid-5", None, "node1", True)
    assert slow.share == pytest.approx(slower, abs=0.006)
    assert slow.captures == 40


def test_a_slow_gpu_without_uuid_is_named_by_its_number_on_its_host() -> None:
    found = fleet(side_by_side(3, {2: 0.05}, uuids=False))
    (slow,) = found.slow_gpus
    assert (slow.uuid, slow.device, slow.host) == (None, 2, "node1")
    said = " ".join(render_fleet(found).split())
    assert "SLOW GPUS GPU 2 of node1 takes " in said and "(40 captures) than the GPUs beside it" in said


def test_numbers_without_a_host_name_no_gpu() -> None:
    entries = [
        replace(entry, labels={name: value for name, value in entry.labels.items() if name != "host"})
        for entry in side_by_side(3, {2: 0.05}, uuids=False)
    ]
    assert fleet(entries).slow_gpus == []


def test_two_captures_do_not_make_a_slow_gpu() -> None:
    assert fleet(side_by_side(4, {1: 0.2})[:2]).slow_gpus == []


def test_gpus_of_single_captures_are_told_by_the_step() -> None:
    """One host gives each night another GPU."""
    entries = []
    for entry, host in ((one, one.labels["host"]) for one in on_hosts(5, {"node2": 0.06})):
        entries.append(
            replace(entry, labels=entry.labels | {"host": "node1"}, paces=[Pace(f"uuid of {host}", 0, None)])
        )
    found = fleet(entries)
    (slow,) = found.slow_gpus
    assert (slow.uuid, slow.host, slow.captures, slow.beside) == ("uuid of node2", "node1", 10, False)
    assert "GPU 0 of node1 (uuid of node2) takes " in render_fleet(found)
    assert found.slow_hosts == []
