"""The templates of the page, and the filters by which they write figures."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache, partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import jinja2
import jinja2.bccache
import jinja2.compiler

from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections import words
from traceanalyzer.resources import data_folder
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.units import format_bytes, format_count, format_share

_COMPILED_AS: dict[str, Any] = {
    "autoescape": True,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "optimized": False,  # most are rendered once: to work out constants beforehand takes longer than it spares
}


def template_text(name: str) -> str:
    """A template, style or script as text."""
    return (data_folder("templates") / name).read_text(encoding="utf-8")


def section_text(section: PageSection[Any], name: str) -> str:
    """A template, style or script of a section as text: its own, else one of the page's."""
    return _text(section.files, name)


def _text(files: Traversable | None, name: str) -> str:
    own = files / name if files is not None else None
    return own.read_text(encoding="utf-8") if own is not None and own.is_file() else template_text(name)


def environment(files: Traversable | None = None) -> jinja2.Environment:
    """Whatever a template puts into the page is escaped; a name that it does not know is an error. A template is what `files` has of
    that name, else one of the page's."""
    return _ours() if files is None else _environment(files)


@cache
def _ours() -> jinja2.Environment:
    """The one of all sections that have no templates of their own: many share some."""
    return _environment(None)


def _environment(files: Traversable | None) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(_text, files)),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        bytecode_cache=_compiled() if files is None else None,
        **_COMPILED_AS,
    )
    made.filters.update(
        duration=words.format_duration,
        readable=words.readable,
        sentence=words.sentence,
        bytes=format_bytes,
        amount=words.amount_words,
        share=format_share,
        tenths=_tenths,
        count=format_count,
        ranks=rank_list,
        ms=_milliseconds,
        signed_ms=_signed_milliseconds,
        signed_share=_signed_share,
        day=words.day,
    )
    return made


def _compiled() -> jinja2.BytecodeCache | None:
    """Where compiled templates are kept; nowhere, where templates are no files."""
    folder = data_folder("templates")
    return _Compiled(str(folder / "__pycache__")) if isinstance(folder, Path) else None


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Compiled templates, beside them and on the same terms as Python keeps compiled modules: compiling them takes longer than
    filling them."""

    def get_source_checksum(self, source: str) -> str:
        """Of all that compiling depends on."""
        compiler = Path(jinja2.compiler.__file__).stat()
        return super().get_source_checksum(f"{source} {_COMPILED_AS} {compiler.st_mtime_ns} {compiler.st_size}")

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Written whole or not at all."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):  # whoever must not write there compiles each time
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


def _milliseconds(ns: int) -> str:
    """Milliseconds with three decimals, so that figures align in a column."""
    return f"{ns / 1e6:,.3f}"


def _signed_milliseconds(ns: int) -> str:
    """The same of a difference, with its sign."""
    amount = _milliseconds(abs(ns))
    return amount if float(amount.replace(",", "")) == 0 else f"{'+' if ns > 0 else '−'}{amount}"


def _signed_share(share: float) -> str:
    """A difference as a share, with its sign."""
    return f"{'+' if share > 0 else '−'}{format_share(abs(share))}"


def _tenths(share: float) -> str:
    """Percent with one decimal, so that figures align; what is tiny but there is never shown as zero, nor nearly all as all."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1 else f"{share * 100:.1f}%"
