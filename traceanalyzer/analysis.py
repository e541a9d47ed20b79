"""From inputs to the result document: the one place that knows the whole order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.config import Config
from traceanalyzer.derive import frames
from traceanalyzer.derive.catalog import Catalog
from traceanalyzer.derive.frameworks import frameworks
from traceanalyzer.derive.tables.ledger import IDLE_CAUSES
from traceanalyzer.engine.library import load_rules
from traceanalyzer.engine.predictions import with_predictions
from traceanalyzer.engine.run import run_rules
from traceanalyzer.engine.splits import splits
from traceanalyzer.errors import InputError
from traceanalyzer.model.store import is_store, read_store
from traceanalyzer.model.trace import Trace
from traceanalyzer.result.document import Device, Evidence, Finding, Health, InputInfo, Result, Scope, Steps
from traceanalyzer.result.verdict import judge
from traceanalyzer.version import VERSION

if TYPE_CHECKING:
    from traceanalyzer.ingest.pipeline import ProgressFactory


def load(
    paths: Sequence[str | Path] | str | Path, progress: ProgressFactory | None = None, max_bytes: int | None = None
) -> Trace:
    """Read trace files, folders of them, or one store; `max_bytes` replaces the limit on what one file may unpack to.

    Raises InputError for what cannot be read.
    """
    given = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    stores = [p for p in given if is_store(p)]
    if not stores:
        # A store is read without any of the readers.
        from traceanalyzer.ingest.pipeline import ingest

        return ingest(given, progress, max_bytes)
    if len(given) > 1:
        raise InputError(f"{stores[0]}: a store is analysed alone; ingest the traces together into one store instead")
    return read_store(stores[0])


def analyze(trace: Trace, config: Config | None = None) -> Result:
    """Run every rule over the trace and write the result document."""
    return analyze_tables(trace, catalog_of(trace, config), config)


def catalog_of(trace: Trace, config: Config | None = None) -> Catalog:
    """The trace's tables, derived as `config` asks."""
    return Catalog(trace, (config or Config()).input_patterns)


def analyze_tables(trace: Trace, catalog: Catalog, config: Config | None = None) -> Result:
    """As `analyze`, over a catalog that the caller goes on to use."""
    describe = partial(_gpu_name, trace)
    seen = frameworks(catalog.table("gpu_ops"), catalog.table("host_ranges"))
    config = config or Config()
    engine = run_rules(load_rules(config.rules), catalog, config.params, describe, config.disable)
    found = with_predictions(engine.findings, engine.claims, catalog.table("what_if"))
    health = _health(trace, catalog.table("health"))
    ledger = catalog.table("ledger").to_pylist()
    return Result(
        tool={"name": "traceanalyzer", "version": VERSION},
        inputs=[InputInfo(i.path, i.sha256, i.bytes, i.format, i.producer, i.rank, i.world_size) for i in trace.inputs],
        health=health,
        devices=[_device(trace, row) for row in ledger],
        steps=_steps(trace, catalog.table("step_ledger"), ledger),
        findings=[_with_job_ranks(trace, _in_words_of(seen, finding)) for finding in found],
        rules=engine.outcomes,
        verdict=judge(splits(catalog.table("ledger"), engine.claims, found, describe), hidden=_hidden(health)),
    )


def _gpu_name(trace: Trace, rank: int, device: int) -> str:
    """What messages call a GPU: by its rank, else by its number and, among several files, the file's name."""
    source = next((i for i in trace.inputs if i.ordinal == rank), None)
    if source is not None and source.rank is not None:
        return f"rank {source.rank} (GPU {device})"
    if source is None or len(trace.inputs) == 1:
        return f"GPU {device}"
    path = Path(source.path)
    alike = [i for i in trace.inputs if Path(i.path).name == path.name]
    return f"GPU {device} of {path.name if len(alike) == 1 else path.relative_to(path.parent.parent)}"


def can_judge(result: Result) -> bool:
    """False when the trace has no GPU work to judge, or damage hides it (exit code 3)."""
    return any(d.window_ns for d in result.devices) and not any(note.severity == "high" for note in result.health)


def _hidden(health: list[Health]) -> str | None:
    """Why nothing can be judged: what grave health notes say. Figures of such a trace are shown, a verdict is not."""
    grave = [h for h in health if h.severity == "high"]
    return f"Could not judge: {grave[0].message}." if grave else None


def _health(trace: Trace, table: pa.Table) -> list[Health]:
    return [
        Health(row["code"], row["severity"], row["message"], row["count"], trace.rank_of(row["rank"]))
        for row in table.to_pylist()
    ]


def _device(trace: Trace, row: dict[str, Any]) -> Device:
    plain = (
        *("busy", "compute", "communication", "exposed_communication", "memcpy", "exposed_memcpy", "exposed_memset"),
        *("idle", "max_gap"),
    )
    return Device(
        rank=trace.rank_of(row["rank"]),
        device=row["device"],
        name=row["name"],
        window_ns=row["duration"],
        idle_by_cause_ns={cause: row[f"idle_{cause}"] for cause in IDLE_CAUSES},
        gpu_op_count=row["gpu_op_count"],
        kernel_count=row["kernel_count"],
        **{f"{name}_ns": row[name] for name in plain},
    )


def _steps(trace: Trace, table: pa.Table, ledger: list[dict[str, Any]]) -> list[Steps]:
    """Step times per GPU, sorted by (rank, device), over the steps that have one before them (or the only one there is)."""
    ops = {(row["rank"], row["device"]): row["gpu_op_count"] for row in ledger}
    result = []
    for (rank, device), group in frames.split(table):
        timed = group.filter(group["complete"]) if group.num_rows > 1 else group
        median, p95 = (int(np.quantile(frames.duration(timed), share)) for share in (0.5, 0.95))
        spread = round((p95 - median) / median, 6) if median else 0.0
        outside = ops[rank, device] - pc.sum(group["gpu_op_count"]).as_py()
        counts = pc.sum(group["slow"]).as_py(), outside
        method = group["method"][0].as_py()
        result.append(Steps(trace.rank_of(rank), device, group.num_rows, method, median, p95, spread, *counts))
    return result


def _in_words_of(seen: frozenset[str], finding: Finding) -> Finding:
    """Keep the advice for the frameworks in use; all of it when there is none for them."""
    kept = [
        {name: text for name, text in advice.items() if name in seen or name == "any"} for advice in finding.recommend
    ]
    return replace(finding, recommend=[advice for advice in kept if advice] or finding.recommend)


def _with_job_ranks(trace: Trace, finding: Finding) -> Finding:
    """The engine knows the tables' ranks; the result shows the job's, or null."""

    def job(rank: int | None) -> int | None:
        return None if rank is None else trace.rank_of(rank)

    return replace(
        finding,
        scope=Scope(job(finding.scope.rank), finding.scope.device),
        evidence=[Evidence(job(e.rank), e.device, e.start_ns, e.end_ns, e.label) for e in finding.evidence],
    )
