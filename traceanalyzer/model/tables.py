"""What gives tables by name: a trace, a catalog of derived tables, the ranks that a report shows."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Tables(Protocol):
    """Event and derived tables by their declared names; KeyError for one that is not there."""

    def table(self, name: str) -> pa.Table: ...
