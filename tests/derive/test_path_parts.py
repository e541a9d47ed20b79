"""The parts of a path: what is asked of a GPU's times does not hang on what lies outside of it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import traceanalyzer as ta
from tests.analysis.test_findings import inputs
from tests.support.places import FIXTURES
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.derive.replay.chains import Ends, Line, Pieces, chains
from traceanalyzer.derive.replay.path_parts import GpuTimes, NameList, PathParts, path_parts
from traceanalyzer.vocabulary.lines import UNATTRIBUTED

ALWAYS = (-(1 << 61), 1 << 61)
TRACES = [FIXTURES / file for file in inputs(FIXTURES)]


@pytest.mark.parametrize("path", TRACES[::5], ids=lambda path: path.name)
def test_the_parts_of_a_stay_are_those_of_all_time(path) -> None:
    catalog = Catalog(ta.load(path))
    for key, timeline in catalog.value("timelines").items():
        line, length = Line.of(timeline), timeline.length
        least = timeline.origin + np.array([length // 3, length // 2])
        pieces = chains(line, Ends.at(line, least, least + length // 6)).pieces
        (some, names), (every, all_names) = (parts(catalog, key, pieces, asked) for asked in (pieces.within, ALWAYS))
        assert names == all_names
        for field in fields(PathParts):
            assert getattr(some, field.name).tolist() == getattr(every, field.name).tolist()


def parts(catalog: Catalog, key: frames.Key, pieces: Pieces, asked: tuple[int, int]) -> tuple[PathParts, list[str]]:
    ops, gaps, launches = (frames.by_device(catalog.table(one))[key] for one in ("ledger_ops", "gaps", "launches"))
    names = NameList()
    gpu = GpuTimes(ops, gaps, names, UNATTRIBUTED.cause, asked)
    return path_parts(pieces, gpu, launches, catalog.value("host"), names), names.texts
