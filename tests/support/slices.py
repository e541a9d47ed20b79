"""Small stretches of the real traces among the fixtures, byte for byte as the profiler wrote their events."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from tests.support.places import FIXTURES

KINETO = (
    "kineto/small_grid.slow.pt.trace.json.gz",
    "kineto/h2d_pageable.slow.pt.trace.json.gz",
    "kineto/cpu_postprocess.slow.pt.trace.json.gz",
    "kineto/attention_masked.slow.pt.trace.json.gz",
    "kineto/streams_overlap.slow.pt.trace.json.gz",
    "kineto/gc_stack.slow.pt.trace.json.gz",
    "kineto/launch_storm.fixed.pt.trace.json.gz",
    "captured/churn.json.gz",
    "captured/checkpoint.json.gz",
    "captured/host_python.json.gz",
    "captured/isnan_sync.json.gz",
    "captured/pageable.json.gz",
    "multirank/pipeline_bubble.slow/rank0.pt.trace.json.gz",
    "multirank/pipeline_bubble.slow/rank3.pt.trace.json.gz",
)
NSYS = ("nsys/h2d_pageable.slow.sqlite", "nsys/launch_storm.fixed.graph-level.sqlite")
_EVENTS, _END, _SEAM = b'"traceEvents": [', b"\n  ],", b"\n  },"


@cache
def kineto(file: str, count: int = 250) -> bytes:
    """The `count` events of a Kineto fixture that begin first, and all names of its processes and threads."""
    text = gzip.decompress((FIXTURES / file).read_bytes())
    head, body = text.split(_EVENTS)
    body, tail = body.rsplit(_END, 1)
    texts = (body + b",").split(_SEAM)[:-1]
    events = [json.loads(event.lstrip(b",") + b"}") for event in texts]
    times = [event["ts"] for event in events if event["ph"] != "M"]
    last = sorted(times)[:count][-1]
    kept = [raw for raw, event in zip(texts, events, strict=True) if event["ph"] == "M" or event["ts"] <= last]
    return head + _EVENTS + (_SEAM.join(kept) + _SEAM).removesuffix(b",") + _END + tail


@cache
def nsys(file: str, count: int = 60) -> bytes:
    """An export with the first `count` rows of each table, without the tables of codes that are never read, in small pages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.sqlite"
        path.write_bytes((FIXTURES / file).read_bytes())
        connection = sqlite3.connect(path)
        for (name,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            if name.startswith("ENUM_NSYS_"):
                connection.execute(f'drop table "{name}"')
            elif name != "StringIds":
                connection.execute(f'delete from "{name}" where rowid > {count}')
        connection.commit()
        connection.execute("pragma page_size = 512")
        connection.execute("vacuum")
        connection.close()
        return path.read_bytes()
