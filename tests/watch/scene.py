"""A folder in which captures land, and a watcher of it with all of its outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kineto import KinetoTrace
from traceanalyzer.config import Config
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.ingest.how import How
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.watch.notices import Notices
from traceanalyzer.watch.outputs import Kept
from traceanalyzer.watch.taking import Task
from traceanalyzer.watch.watching import Watch, Watcher

STEPS = 4
DAY_NS = 86_400 * 10**9
FIRST_NS = 1_790_000_000 * 10**9
NOBODY = Notices([], None, [])


def trace(night: int = 0, host_us: float = 300.0) -> KinetoTrace:
    """Steps of a kernel of 500 µs that the host launches after `host_us` of its own, recorded in a night."""
    made = KinetoTrace()
    made.metadata["baseTimeNanoseconds"] = FIRST_NS + night * DAY_NS
    length = host_us + 700
    for step in range(STEPS):
        begin = step * length
        made.range("work", begin + 10, begin + host_us, category="cpu_op")
        made.op(begin + host_us + 50, begin + host_us + 550, launch=(begin + host_us, begin + host_us + 10))
        made.call("cudaDeviceSynchronize", begin + host_us + 20, begin + host_us + 560)
        made.range(f"ProfilerStep#{step}", begin, begin + length)
    return made


@dataclass(frozen=True)
class Scene:
    """All of it lies in one folder."""

    folder: Path

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def history(self) -> Path:
        return self.folder / "history"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    @property
    def metrics(self) -> Path:
        return self.folder / "gpu.prom"

    @property
    def log(self) -> Path:
        return self.folder / "captures.jsonl"

    def land(self, name: str, content: KinetoTrace | bytes) -> Path:
        """A capture lies there at once, as a rename makes it."""
        self.landing.mkdir(parents=True, exist_ok=True)
        place, aside = self.landing / name, self.folder / "aside"
        aside.write_bytes(content if isinstance(content, bytes) else content.text().encode())
        return aside.rename(place)

    def watcher(
        self,
        *,
        keep: int | None = None,
        notices: Notices = NOBODY,
        settle_s: float = 0,
        give_up_s: float = 600,
        labels: Sequence[str] = (),
    ) -> Watcher:
        self.landing.mkdir(exist_ok=True)
        link = f"{os.path.relpath(self.reports, self.history)}/"
        task = Task(self.history, self.reports, link, labels, Config(), How(jobs=1), 10, True)
        kept = Kept(self.reports, self.metrics, self.log, keep)
        return Watcher(Watch(self.landing, task, kept, notices, settle_s, give_up_s, 0.1))

    def look(self, **options: Any) -> str:
        """One look of a watcher that was just started, and what is left."""
        return self.watcher(**options).look()

    def entries(self) -> list[Entry]:
        return Shelf(self.history).read().entries

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]

    def pages(self) -> set[str]:
        """The names of the reports."""
        return {one.name for one in self.reports.glob("*.html")} - {"index.html"}
