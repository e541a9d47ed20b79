"""Which rank recorded a file, told by the arguments of its collectives.

PyTorch notes for each collective the ranks of its group and a rank within that group: the rank's own where all ranks play the same
part, else that of the root or of the peer. So only the former tell who recorded the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from traceanalyzer.ingest.formats.kineto.text.decode import Args, plain

_ROOTLESS = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier", re.IGNORECASE)
_NOBODY = -1


class GroupRanks:
    """Takes the arguments of operators; few of them differ."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, str]] = set()

    def take(self, args: Iterable[Args]) -> None:
        """Look at the arguments of one chunk's operators, most of which are no collectives."""
        self._seen.update(
            (a.collective, str(plain(a.rank)), str(plain(a.group_ranks))) for a in args if a.rank and a.collective
        )

    @property
    def rank(self) -> int | None:
        """The job's rank; None when no collective tells it, or when they contradict each other."""
        told = {_rank(own, ranks) for name, own, ranks in self._seen if _ROOTLESS.search(name)} - {None}
        return told.pop() if len(told) == 1 and _NOBODY not in told else None


def _rank(own: str, ranks: str) -> int | None:
    """The job's rank of the member `own` of a group: None where its ranks are not all listed, `_NOBODY` where it has no such member."""
    try:
        listed, place = json.loads(ranks), int(own)
    except ValueError:
        return None
    # Long lists are cut short, and the group of all ranks may list none.
    if not isinstance(listed, list) or not listed or not all(type(rank) is int for rank in listed):
        return None
    return listed[place] if 0 <= place < len(listed) else _NOBODY
