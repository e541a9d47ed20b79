"""Texts without what tells of a person or a machine: credentials, paths, users, hosts.

It is best effort: what looks like nothing of the kind, such as a bare first name, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.records import dataclass
from traceanalyzer.redaction import addresses, assignments, credentials, paths


@dataclass(frozen=True)
class Pass:
    """One kind of change. Every text that `change` changes matches `hint` (RE2): a cheap way to leave most of them alone."""

    hint: str
    change: Callable[[str], str]


PASSES = (
    Pass(credentials.HINT, credentials.without_credentials),
    Pass(assignments.HINT, assignments.without_values),
    Pass(paths.HINT, paths.without_places),
    Pass(addresses.HINT, addresses.without_addresses),
)


def redacted_text(text: str, passes: Sequence[Pass] = PASSES) -> str:
    """The text with every path shortened to what helps, and with neither users nor hosts nor credentials. Idempotent, and linear in
    the length of the text.

    Of an installed package the path from the package on stays, of any other its last two parts, without the name of a user's folder.
    """
    return reduce(lambda before, one: one.change(before), passes, text)


def redacted_names(names: pa.Array, passes: Sequence[Pass] = PASSES) -> dict[str, str]:
    """Those of distinct names that change, and what becomes of them: for each name the same as `redacted_text`, but quick for many."""
    told = [
        pc.fill_null(pc.match_substring_regex(names, one.hint), False).to_numpy(zero_copy_only=False) for one in passes
    ]
    rows = np.flatnonzero(np.logical_or.reduce(told))
    changed = {}
    for row, name in zip(rows.tolist(), names.take(pa.array(rows)).to_pylist(), strict=True):
        hinted = [one for one, own in zip(passes, told, strict=True) if own[row]]
        if redacted_text(name, hinted) != name:
            changed[name] = redacted_text(name, passes)
    return changed
