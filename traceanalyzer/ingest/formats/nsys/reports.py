"""Reports of Nsight Systems as it records them: converted with its own `nsys` where that is installed, else the command to run."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.scratch import ScratchFolder
from traceanalyzer.ingest.formats.nsys.sqlite import SQLITE_MAGIC
from traceanalyzer.terminal import tell
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import LOW

REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
CAPTURE_SUFFIX = ".qdstrm"
TIMEOUT_S = 2 * 3600
# Times on disk are worth comparing only this exactly: copying sets them anew.
_SAME_AGE_S = 2
_OPTIONS = ("--type", "sqlite", "--include-blobs=true")


class Reports:
    """Reports of Nsight Systems: known by their names, since nothing is published of how they begin."""

    def is_called(self, path: Path) -> bool:
        return path.name.lower().endswith((*REPORT_SUFFIXES, CAPTURE_SUFFIX))

    def is_unfinished(self, path: Path) -> bool:
        """Whether it is what is left of a recording that was killed."""
        return path.name.lower().endswith(CAPTURE_SUFFIX)

    def is_converted(self, head: bytes) -> bool:
        return head.startswith(SQLITE_MAGIC)

    def results_of(self, path: Path) -> tuple[Path, ...]:
        """Where the SQLite export of a report, or the report of a capture, would lie."""
        suffixes = (".sqlite", ".sqlite.gz", ".sqlite.zst", *(REPORT_SUFFIXES if self.is_unfinished(path) else ()))
        return tuple(path.with_suffix(suffix) for suffix in suffixes)

    def convert(self, path: Path) -> tuple[Path, ScratchFolder]:
        """The report as SQLite in a temporary folder, and that folder.

        Raises InputError with the command to run where there is no `nsys`, and with its own words where it fails.
        """
        nsys = shutil.which("nsys")
        if self.is_unfinished(path) or nsys is None:
            raise InputError(f"{path}: {self.advice(path)}")
        folder = ScratchFolder()
        target = folder.path / "export.sqlite"
        tell(f"converting {path} with nsys export ...")
        # Releases before 2022 know no blobs.
        for options in (_OPTIONS, _OPTIONS[:-1]):
            said = _run([nsys, "export", *options, "--output", str(target), str(path.absolute())], path)
            if target.exists() or "include-blobs" not in said:
                break
        if not target.exists():
            last = said.strip().splitlines()[-1] if said.strip() else "it wrote nothing"
            raise InputError(
                f"{path}: nsys export failed ({last}); use the nsys of the release that recorded it, or a later one"
            )
        return target, folder

    def advice(self, path: Path) -> str:
        return _advice(path)

    def stale(self, converted: Path) -> tuple[Note, ...]:
        return stale_export(converted)


def _run(command: list[str], report: Path) -> str:
    """What a command said. A failure shows in what it leaves."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{report}: nsys export took more than {TIMEOUT_S // 3600} hours; {_advice(report)}"
        ) from error
    except OSError as error:
        raise InputError(f"{report}: nsys export could not be started ({error.strerror}); {_advice(report)}") from error
    if done.returncode:
        Path(command[-2]).unlink(missing_ok=True)
    return done.stdout.decode("utf-8", "replace").replace("\r", "\n")


def _advice(report: Path) -> str:
    """What a report is, and the command that makes it readable."""
    finished = report.with_suffix(REPORT_SUFFIXES[0])
    export = shlex.join(["nsys", "export", *_OPTIONS, "--output", str(report.with_suffix(".sqlite"))])
    if report.name.lower().endswith(CAPTURE_SUFFIX):
        return (
            f"an unfinished Nsight Systems capture; convert it first: QdstrmImporter -i {shlex.quote(str(report))}, "
            f"then {export} {shlex.quote(str(finished))}"
        )
    return f"an Nsight Systems report; export it first: {export} {shlex.quote(str(report))}"


def stale_export(export: Path) -> tuple[Note, ...]:
    """A note when the report beside an export is newer than the export."""
    for suffix in REPORT_SUFFIXES:
        report = export.with_suffix(suffix)
        try:
            newer = report.stat().st_mtime - export.stat().st_mtime
        except OSError:
            continue
        if newer > _SAME_AGE_S:
            message = (
                "the report beside this export is newer than the export, which may be of an earlier run; "
                "run nsys export --force-overwrite=true again"
            )
            return (Note(NOT_ALL_READ, LOW, message, 1, report.name),)
    return ()
