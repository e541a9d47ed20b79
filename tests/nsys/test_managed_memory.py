"""Managed memory: nobody launches a migration, but the host that met the page is known, and so is the kernel that waited for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, memcpy, runtime

from traceanalyzer import load
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.result.document import Finding, Result

GPU, COPY, API = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "RUNTIME"))
US = 1000
TO_GPU, TO_HOST = 11, 12
FAULT, ASKED = 2, 1


def migration(start: int, length: int = 10 * US, kind: int = TO_HOST, cause: int | None = FAULT, **more: Any) -> Row:
    lost = {"correlationId": 0, "contextId": 0, "streamId": 0, "bytes": 65536, "migrationCause": cause}
    return memcpy(start, start + length, kind=kind, src=7, dst=7) | lost | more


def program(*migrations: Row, kernel_ends: int = 1000 * US, calls: tuple[Row, ...] = (), **more: Any) -> Tables:
    """A kernel that the main thread waits for, then migrations."""
    own = [runtime(-20 * US, -10 * US), runtime(-10 * US, kernel_ends + 5 * US, name=6, correlation=9)]
    return {GPU: [kernel(0, kernel_ends)], COPY: list(migrations), API: [*own, *calls], **more}


def sweep(first: int, count: int, every: int) -> list[Row]:
    return [migration(first + n * every) for n in range(count)]


def made(tmp_path: Path, tables: Tables) -> tuple[Catalog, Result]:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
    trace = load(make_export(path, tables))
    return Catalog(trace), analyze(trace)


def finding(result: Result) -> Finding | None:
    return next((one for one in result.findings if one.rule == "CPY005"), None)


def idle(catalog: Catalog) -> dict[str, int]:
    (row,) = catalog.table("ledger").to_pylist()
    return {name[5:]: ns for name, ns in row.items() if name.startswith("idle_") and ns}


def test_reads_after_a_wait_are_host_time(tmp_path: Path) -> None:
    catalog, result = made(tmp_path, program(*sweep(1100 * US, 5, 3000 * US)))
    # The kernel is done; the wait returns 5 us later, and counts for 50 us more.
    assert idle(catalog) == {"synchronization": 55 * US, "host_untraced": (100 - 55 + 4 * 2990) * US}
    assert result.findings[0].rule == "CPY005"
    assert "does not record" not in result.verdict.headline


def test_what_the_thread_did_has_its_name(tmp_path: Path) -> None:
    ranges: Row = {
        "start": 1010 * US,
        "end": 20_000 * US,
        "eventType": 59,
        "globalTid": global_id(7, 8),
        "text": "check results",
    }
    catalog, result = made(tmp_path, program(*sweep(1100 * US, 5, 3000 * US), NVTX_EVENTS=[ranges]))
    assert idle(catalog)["host_work"] == (100 - 55 + 4 * 2990) * US
    assert {"check results"} <= set(catalog.table("gaps")["place"].to_pylist())
    assert result.findings[0].rule == "CPY005"


def test_the_thread_that_called_last_met_the_page(tmp_path: Path) -> None:
    other = (runtime(1050 * US, 1060 * US, tid=9, name=3, correlation=77),)
    catalog, _ = made(tmp_path, program(*sweep(1100 * US, 3, 3000 * US), calls=other))
    assert {8 if thread is None else thread for thread in catalog.table("gaps")["thread"].to_pylist()} == {9}
    # Calls of another process say nothing.
    other = (runtime(1050 * US, 1060 * US, pid=11, tid=9, name=3, correlation=77),)
    catalog, _ = made(tmp_path, program(*sweep(1100 * US, 3, 3000 * US), calls=other))
    assert set(catalog.table("gaps")["thread"].to_pylist()) == {8}


def test_without_calls_nothing_is_known(tmp_path: Path) -> None:
    catalog, result = made(tmp_path, {GPU: [kernel(0, 1000 * US)], COPY: sweep(1100 * US, 5, 300 * US)})
    assert set(idle(catalog)) == {"unattributed"}
    assert finding(result) is not None


def test_a_call_ends_a_sweep(tmp_path: Path) -> None:
    calls = tuple(runtime((1500 + 3000 * n) * US, (1501 + 3000 * n) * US, name=3, correlation=50 + n) for n in range(5))
    catalog, _ = made(tmp_path, program(*sweep(1100 * US, 6, 3000 * US), calls=calls))
    assert catalog.table("copy_bursts").num_rows == 0
    catalog, _ = made(tmp_path, program(*sweep(1100 * US, 6, 3000 * US)))
    (run,) = catalog.table("copy_bursts").to_pylist()
    assert (run["copies"], run["idle"]) == (6, 5 * 2990 * US)


def test_kernel_time_in_which_pages_move_is_said_to_be_that(tmp_path: Path) -> None:
    moved = [migration((10 + 20 * n) * US, 15 * US, TO_GPU) for n in range(40)]
    catalog, result = made(tmp_path, program(*moved))
    assert catalog.table("copy_bursts")["under_kernels"].to_pylist() == [600 * US]
    found = finding(result)
    assert found is not None
    assert found.saving.recoverable_ns == 600 * US
    assert "Pages also move during 60% of the kernel time" in found.message
    # Still computing, and not copying, in the sum of all.
    assert result.devices[0].compute_ns == 1000 * US
    assert "computes 100% of the time; about 600 us of" in result.verdict.headline


def test_prefetched_pages_move_beside_the_kernel(tmp_path: Path) -> None:
    moved = [migration((10 + 20 * n) * US, 15 * US, TO_GPU, ASKED) for n in range(40)]
    catalog, result = made(tmp_path, program(*moved))
    assert set(catalog.table("copies")["migration_cause"].to_pylist()) == {"asked"}
    assert catalog.table("copy_bursts").num_rows == 0
    assert finding(result) is None


def test_exports_without_causes(tmp_path: Path) -> None:
    moved = [migration((10 + 20 * n) * US, 15 * US, TO_GPU) for n in range(40)]
    for row in moved:
        del row["migrationCause"]
    _, result = made(tmp_path, program(*moved))
    assert finding(result) is not None
    assert STRINGS[6].startswith("cudaDeviceSynchronize")
