"""Pairs of programs with one planted fault, captured with it and without."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

import traceanalyzer as ta
from tests.support.places import CORPUS
from traceanalyzer.analysis import analyze_parts, parts_of
from traceanalyzer.analysis.capturing import WORK_TABLES, capture_of
from traceanalyzer.result.captures.capture import Capture

SAME = ("compiled_train", "leak_growth", "comm_not_overlapped")
"""Pairs of the corpus that take as long under the profiler: 2 %, 1 % and 14 % apart without it."""
SLOWER = ("fsdp_one_unit",)
"""TRUTH.yaml: the other variant was not faster."""


@cache
def captured_of(path: Path) -> Capture:
    """What is compared of a trace or of a folder of ranks."""
    return capture_of(path.name, analyze_parts(parts_of(ta.load(path)), also=WORK_TABLES))


@cache
def truth() -> dict[str, Any]:
    return yaml.safe_load((CORPUS / "TRUTH.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def corpus_pairs() -> list[tuple[str, str]]:
    """(folder, name) of each; none where the corpus is not here."""
    if not CORPUS.is_dir():
        return []
    return [
        (kind, name) for kind in ("kineto", "multirank") for name, known in truth()[kind].items() if "fixed" in known
    ]


def corpus_pair(kind: str, name: str) -> list[Path]:
    """The slow and the fixed one."""
    ending = ".pt.trace.json.gz" if kind == "kineto" else ""
    return [CORPUS / kind / f"{name}.{state}{ending}" for state in ("slow", "fixed")]
