"""Work of graphics on the GPU, which is not read: it must be named, since the GPU was not idle while it ran."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.nsys.database import Database

_TABLES = "select cast(name as text) as name from sqlite_master where type = 'table'"
_GRAPHICS = re.compile(r"(VULKAN|OPENGL|DX\d+|D3D\d+)_(WORKLOAD|API)", re.IGNORECASE)
_NAMES = {"VULKAN": "Vulkan", "OPENGL": "OpenGL"}
_ROWS = {"WORKLOAD": "workloads on the GPU", "API": "calls on the host"}


@dataclass(frozen=True)
class Graphics:
    """Rows by what they are: "Vulkan workloads on the GPU"; what ran on the GPU first, the most first."""

    rows: dict[str, int]

    @classmethod
    def read(cls, database: Database) -> Graphics:
        """Count the tables of graphics that the file has."""
        found = database.table(_TABLES)
        rows: list[tuple[bool, int, str]] = []
        for name in found["name"].to_pylist() if found else []:
            if known := _GRAPHICS.fullmatch(str(name)):
                library, what = known[1].upper(), known[2].upper()
                said = (
                    f"{_NAMES.get(library, 'Direct3D ' + library.removeprefix('D3D').removeprefix('DX'))} {_ROWS[what]}"
                )
                rows.append((what == "API", -database.row_count(str(name)), said))
        return cls({said: -count for _, count, said in sorted(rows) if count})

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {what}" for what, count in self.rows.items())

    def report(self, sink: Sink) -> None:
        """Say it beside work of CUDA that is judged."""
        on_gpu = {what: count for what, count in self.rows.items() if what.endswith("GPU")}
        if on_gpu:
            message = "graphics work is not read: the GPU may be busy with it where it looks idle"
            sink.health("TRC001", "low", message, sum(on_gpu.values()), str(self))
