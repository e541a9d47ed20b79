"""The packages that docs/evidence.md shows, as they would be installed: a kind of evidence and a format of nobody's."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
_BLOCK = re.compile(r"\*\*`(?P<file>[\w./-]+)`\*\*(?P<words>.*?)\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_POINTS = {
    "power_log": "[traceanalyzer.evidence]\npower_log = power_log:KIND\n",
    "kernel_csv": "[traceanalyzer.formats]\nkernel_csv = kernel_csv:KIND\n",
}
START_NS = 1_795_883_759_923_773_145
"""When the first sample of `power_log` was taken, since the epoch."""


def install(folder: Path) -> Path:
    """Write the packages of the page into a folder as pip would, so that it only has to be on the path; return it."""
    folder.mkdir(exist_ok=True)
    for found in _BLOCK.finditer(PAGE.read_text()):
        if found["file"] != "pyproject.toml":
            file = folder / found["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(found["text"])
    for name, points in _POINTS.items():
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
    return folder


def power_log(path: Path, marks: str = "", watts: float = 90, start_ns: int = START_NS, count: int = 20) -> Path:
    """A log of power with a sample every millisecond."""
    lines = [f"{start_ns + number * 1_000_000} {watts}" for number in range(count)]
    path.write_text("\n".join([f"#power-log {marks}", *lines]) + "\n")
    return path


def kernel_table(path: Path) -> Path:
    """Four kernels with as much idle time between them."""
    rows = [f"{at * 2_000_000},{at * 2_000_000 + 1_000_000},0,7,gemm" for at in range(4)]
    path.write_text("\n".join(["start_ns,end_ns,device,stream,name", *rows]) + "\n")
    return path
