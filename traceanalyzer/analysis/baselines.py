"""From captures to a baseline: only what is a sound measure of one program is kept."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.analysis.captures import check_different
from traceanalyzer.errors import NotJudgedError
from traceanalyzer.result.captures.capture import Baseline, Capture
from traceanalyzer.result.captures.metrics import why_unjudged
from traceanalyzer.result.comparing.alike import unlike
from traceanalyzer.version import VERSION

ANYWAY = "--anyway saves it all the same"
NOTHING = "it holds no unit of work"


def baseline_of(captures: Sequence[Capture], anyway: bool = False) -> Baseline:
    """A baseline of captures of one program.

    Raises NotJudgedError for a capture that is no sound measure, and for captures that do not belong together; with `anyway` only for
    one that holds nothing. Raises InputError for a run that is there twice.
    """
    check_different(captures)
    for one in captures:
        if one.unit is None and (one.unjudged or not anyway):
            raise NotJudgedError(f"{one.name}: no baseline: {why_unjudged(one.unjudged or one.no_unit or NOTHING)}")
        if not anyway:
            _check_sound(one, alone=len(captures) == 1)
            if words := unlike(captures[0], one, captures[0].name, one.name):
                raise NotJudgedError(f"captures of one program on one machine make a baseline, but {words}; {ANYWAY}")
    return Baseline({"name": "traceanalyzer", "version": VERSION}, list(captures))


def _check_sound(capture: Capture, alone: bool) -> None:
    if capture.unjudged:
        raise NotJudgedError(f"{capture.name}: no baseline: {why_unjudged(capture.unjudged)}; {ANYWAY}")
    if alone and capture.unit is not None and capture.unit.kind == "capture":
        raise NotJudgedError(
            f"{capture.name}: no baseline: no steps are marked and no sequence of kernels repeats, so noise cannot be told from "
            f"one capture; mark steps (prof.step(), or NVTX ranges named step_N), name more captures, or {ANYWAY}"
        )
    if capture.damage:
        more = f" (and {len(capture.damage) - 1} more)" if len(capture.damage) > 1 else ""
        raise NotJudgedError(
            f"{capture.name}: no baseline of a damaged trace: {capture.damage[0]}{more}; record it again, or {ANYWAY}"
        )
