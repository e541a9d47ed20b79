"""What the names of MPI's functions say: what a call does, and which collective it is."""

from __future__ import annotations

import re
from functools import lru_cache

SEND, RECEIVE, COLLECTIVE, WAIT, OTHER = "send", "receive", "collective", "wait", "other"
_NAME = re.compile(r"P?MPI_([A-Z]\w*)", re.IGNORECASE)
_SEND = re.compile(r"i?[bsr]?send")
_RECEIVE = re.compile(r"i?m?recv")
_WAIT = re.compile(r"(?:wait|test)(?:all|any|some)?")
# By the function without the i of those that return at once, and without what only says how sizes are given.
_COLLECTIVES = {
    "barrier": "barrier",
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reduce_scatter_block": "reduce-scatter",
    "alltoall": "all-to-all",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}
_SUFFIX = re.compile(r"(?<=gather)v$|(?<=scatter)v$|(?<=alltoall)[vw]$")


@lru_cache(maxsize=1 << 12)
def function(name: str) -> str | None:
    """The function in small letters, without its prefix: "iallreduce" of "PMPI_Iallreduce"; None for what is no name of MPI."""
    found = _NAME.match(name)
    return re.sub(r"(?:_c|_f08(?:ts)?)?_*$", "", found[1].lower()) if found else None


def does(name: str) -> str:
    """One of SEND, RECEIVE, COLLECTIVE, WAIT and OTHER."""
    called = function(name) or ""
    if _SEND.fullmatch(called):
        return SEND
    if _RECEIVE.fullmatch(called):
        return RECEIVE
    if _WAIT.fullmatch(called):
        return WAIT
    return COLLECTIVE if collective(name) else OTHER


def collective(name: str) -> str | None:
    """The kind of collective, as communication kernels have it; None for other functions."""
    called = _SUFFIX.sub("", function(name) or "")
    return _COLLECTIVES.get(called) or (_COLLECTIVES.get(called[1:]) if called.startswith("i") else None)


def returns_at_once(name: str) -> bool:
    """Whether the call only starts what another call waits for."""
    called = function(name) or ""
    return called.startswith("i") and does(name) in (SEND, RECEIVE, COLLECTIVE)


def begins(name: str) -> bool:
    """Whether it is the call before which a program makes none that communicates."""
    return function(name) in ("init", "init_thread")
