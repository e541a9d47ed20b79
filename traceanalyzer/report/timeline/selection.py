"""Which ranks the timeline shows when there are too many for one page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.gpus import late_ranks

OF_ONE_FINDING = 2
"""New ranks that one finding may bring: its evidence on a third says the same again."""


def ranks_to_show(result: Result, most: int) -> list[int]:
    """Up to `most` positions in `result.inputs`, ascending: late ranks, ranks that the leading findings give evidence on, the lowest.

    An input is one file, which can hold several GPUs; one whose rank is not known comes in its place in the list only. Of evidence that
    is judged without a trace, the first.
    """
    if not result.inputs:
        return list(range(min(len(result.evidence), most)))
    if len(result.inputs) <= most:
        return list(range(len(result.inputs)))
    at = {one.rank: number for number, one in reversed(list(enumerate(result.inputs))) if one.rank is not None}
    late = [late.rank for late in late_ranks(result) if late.rank in at]
    chosen = dict.fromkeys(at[rank] for rank in late[: max(most // 2, 1)])
    for finding in result.findings:
        new = (at[rank] for rank in _ranks_of(finding) if rank in at and at[rank] not in chosen)
        chosen |= dict.fromkeys(islice(dict.fromkeys(new), OF_ONE_FINDING))
        if len(chosen) >= most:
            break
    lowest = sorted(
        range(len(result.inputs)), key=lambda n: (result.inputs[n].rank is None, result.inputs[n].rank or 0, n)
    )
    chosen |= dict.fromkeys(lowest)
    return sorted(islice(chosen, most))


def _ranks_of(finding: Finding) -> Iterator[int]:
    """The ranks of a finding, its own first, then those of its evidence in its order."""
    for rank in (finding.scope.rank, *(evidence.rank for evidence in finding.evidence)):
        if rank is not None:
            yield rank
