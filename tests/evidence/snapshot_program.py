"""A program that allocates, told by hand, as a memory snapshot would record it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tests.evidence.snapshot_tables import tables_of

MiB = 1 << 20
Frame = tuple[str, int, str, bool]
"""File, line, function, whether it is the user's own."""


def line(file: str, number: int, function: str = "step") -> list[Frame]:
    """A stack of one frame of the user's."""
    return [(file, number, function, True)]


class Program:
    """Entries one after another, a millisecond apart; sizes in bytes."""

    def __init__(self, device: int = 0, first_stack: int = 0) -> None:
        self.device = device
        self.entry = 0
        self.first_stack = first_stack
        self.stacks: dict[tuple[Frame, ...], int] = {}
        self.blocks: list[dict[str, object]] = []
        self.events: list[dict[str, object]] = []
        self.segments: list[dict[str, object]] = []
        self.annotations: list[dict[str, object]] = []
        self.started: list[int] = []
        self.reserved_start = 0

    @property
    def now(self) -> int:
        return 1_000_000 * self.entry

    def _stack(self, frames: Sequence[Frame]) -> dict[str, object]:
        if not frames:
            return {}
        number = self.stacks.setdefault(tuple(frames), self.first_stack + len(self.stacks))
        own = next((f"{file}:{at} ({name})" for file, at, name, user in frames if user), None)
        return {"stack": number, "place": own}

    def alloc(self, size: int, frames: Sequence[Frame] = (), address: int = 0, before: bool = False) -> int:
        row: dict[str, object] = {
            "device": self.device,
            "address": address,
            "bytes": size,
            "requested_bytes": size,
            "state": "active_allocated",
            **self._stack(frames),
        }
        if not before:
            row |= {"start_ns": self.now, "start_entry": self.entry}
            self.entry += 1
        self.blocks.append(row)
        return len(self.blocks) - 1

    def free(self, *blocks: int) -> None:
        for block in blocks:
            self.blocks[block] |= {
                "free_requested_entry": self.entry,
                "free_requested_ns": self.now,
                "end_entry": self.entry + 1,
                "end_ns": self.now,
                "state": "freed",
            }
            self.entry += 2

    def event(self, kind: str, size: int, frames: Sequence[Frame] = (), **more: object) -> None:
        row = {"device": self.device, "kind": kind, "bytes": size, "time_ns": self.now, "entry": self.entry}
        self.events.append({**row, **more, **self._stack(frames)})
        self.entry += 1

    def segment(self, address: int, size: int, active: int, largest: int, **more: object) -> None:
        row = {"device": self.device, "address": address, "bytes": size, "active_bytes": active, "expandable": False}
        self.segments.append({**row, "largest_free_bytes": largest, **more})

    def begin(self, marked: bool = True) -> None:
        """A step begins, and the one before ends."""
        if marked:
            if self.annotations:
                self.annotations[-1]["end_ns"] = self.now
            name = f"ProfilerStep#{len(self.annotations)}"
            self.annotations.append({"device": self.device, "name": name, "start_ns": self.now})

    def tables(self, *others: Program, lost: bool = False) -> dict[str, pa.Table]:
        """With those of other GPUs."""
        all_of = (self, *others)
        for one in all_of:
            if one.annotations:
                one.annotations[-1]["end_ns"] = one.now
        frames = [
            {"stack": number, "position": at, "file": file, "line": row, "name": name, "user": user}
            for one in all_of
            for stack, number in one.stacks.items()
            for at, (file, row, name, user) in enumerate(stack)
        ]
        totals = [
            {
                "device": one.device,
                "entries": one.entry,
                "reserved_start_bytes": one.reserved_start,
                "lost_beginning": lost,
            }
            for one in all_of
        ]
        return tables_of(
            {
                "snapshot_blocks": [row for one in all_of for row in one.blocks],
                "snapshot_events": [row for one in all_of for row in one.events],
                "snapshot_segments": [row for one in all_of for row in one.segments],
                "snapshot_annotations": [row for one in all_of for row in one.annotations],
                "snapshot_frames": frames,
                "snapshot_totals": totals,
            }
        )
