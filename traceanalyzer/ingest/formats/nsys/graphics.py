"""Work of graphics on the GPU, which is not read: it must be named, since the GPU was not idle while it ran."""

from __future__ import annotations

import re
from dataclasses import field

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database, table_source
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import LOW

_TABLES = "select cast(name as text) as name from sqlite_master where type = 'table'"
_GRAPHICS = re.compile(r"(VULKAN|OPENGL|DX\d+|D3D\d+)_(WORKLOAD|API)", re.IGNORECASE)
_NAMES = {"VULKAN": "Vulkan", "OPENGL": "OpenGL"}
_LONGEST = 1 << 62
_ROWS = {"WORKLOAD": "workloads on the GPU", "API": "calls on the host"}


@dataclass(frozen=True)
class Graphics:
    """Rows by what they are: "Vulkan workloads on the GPU"; what ran on the GPU first, the most first."""

    rows: dict[str, int]
    times: dict[str, int] = field(default_factory=dict)
    """ns that those on the GPU took, added up: some run side by side."""

    @classmethod
    def read(cls, database: Database) -> Graphics:
        """Count the tables of graphics that the file has."""
        found = database.table(_TABLES)
        rows: list[tuple[bool, int, str]] = []
        times: dict[str, int] = {}
        for name in found["name"].to_pylist() if found else []:
            if known := _GRAPHICS.fullmatch(str(name)):
                library, what = known[1].upper(), known[2].upper()
                said = (
                    f"{_NAMES.get(library, 'Direct3D ' + library.removeprefix('D3D').removeprefix('DX'))} {_ROWS[what]}"
                )
                rows.append((what == "API", -database.row_count(str(name)), said))
                if what != "API":
                    times[said] = _time(database, str(name))
        return cls({said: -count for _, count, said in sorted(rows) if count}, times)

    def __str__(self) -> str:
        return ", ".join(
            f"{count:,} {what}" + (f" that took {format_duration(time)}" if (time := self.times.get(what)) else "")
            for what, count in self.rows.items()
        )

    def report(self, sink: Sink) -> None:
        """Say it beside work of CUDA that is judged."""
        on_gpu = {what: count for what, count in self.rows.items() if what.endswith("GPU")}
        if on_gpu:
            message = "graphics work is not read: the GPU may be busy with it where it looks idle"
            sink.health(NOT_ALL_READ, LOW, message, sum(on_gpu.values()), str(self))


def _time(database: Database, name: str) -> int:
    """ns of all rows of a table that has a start and an end; 0 of any other."""
    if not {"start", "end"} <= database.columns(name).keys():
        return 0
    sound = "typeof(start) = 'integer' and typeof(\"end\") = 'integer' and \"end\" > start"
    # As a floating-point number, which no sum overflows.
    found = database.table(f'select total("end" - start) as ns from {table_source(name)} where {sound}')
    return min(int(found["ns"][0].as_py()), _LONGEST) if found else 0
