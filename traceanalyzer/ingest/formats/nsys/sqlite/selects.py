"""SQL for the tables that are declared in `tables`, as far as a file has them.

Exports differ: tables exist only when they have rows, columns come and go, people trim files. A select is therefore
built from what is declared and what the file has. Text is never null ("" stands for absent), because the driver infers
a column's type from the first rows it meets.
"""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.ingest.formats.nsys.sqlite.database import LONGEST_TEXT, Database, quote_identifier, table_source
from traceanalyzer.ingest.formats.nsys.sqlite.tables import (
    NUMBER,
    NVTX,
    OWNER,
    PROCESS_BITS,
    PUSHED,
    STARTED,
    TEXT,
    Field,
    Table,
)


def find(database: Database, table: Table) -> str | None:
    """The file's name of a table that has all required fields; None when it is not there or lacks one."""
    found = spelling(database, table)
    return found if found is not None and not lacking(database, table, found) else None


def spelling(database: Database, table: Table) -> str | None:
    """The file's name of a table, whatever its columns; None when it is not there."""
    return next((found for name in table.names if (found := database.find(name)) is not None), None)


def lacking(database: Database, table: Table, found: str) -> list[str]:
    """Required fields that the file's table has no column for."""
    columns = database.columns(found)
    return [f.name for f in table.fields if f.name in table.required and not _columns(f, columns)]


def plain(database: Database, table: Table, found: str) -> dict[str, str]:
    """An SQL expression for each field that the file's table has, as it is stored."""
    return _expressions(database, table, found, _plain)


def tolerant(database: Database, table: Table, found: str) -> dict[str, str]:
    """The same with one type whatever is stored: cells that hold nothing of the field's kind are null."""
    return _expressions(database, table, found, _tolerant)


def select(database: Database, table: Table, where: str = "", order: str = "") -> str | None:
    """A tolerant select of all fields in their order, for small tables; absent fields are null, or "" when they are text.

    `where` and `order` are in our names. None when the file lacks the table.
    """
    found = find(database, table)
    if found is None:
        return None
    known = tolerant(database, table, found)
    absent = {field.name: "''" if field.kind == TEXT else "null" for field in table.fields}
    chosen = ", ".join(f"{value} as {quote_identifier(name)}" for name, value in (absent | known).items())
    sql = f"select * from (select {chosen} from {table_source(found)})"
    return sql + (f" where {where}" if where else "") + (f" order by {order}" if order else "")


def payload_rows(database: Database, most: int) -> str | None:
    """A select of the ranges of NVTX with a binary payload of up to `most` bytes, which is hexadecimal text; None without any."""
    found = find(database, NVTX)
    column = database.columns(found).get("binarydata") if found is not None else None
    if found is None or column is None:
        return None
    known = tolerant(database, NVTX, found)
    fields = [field for field in NVTX.fields if field.name not in ("ended_by", "category")]
    absent = {field.name: "''" if field.kind == TEXT else "cast(null as integer)" for field in fields}
    chosen = ", ".join(f"{known.get(name, none)} as {quote_identifier(name)}" for name, none in absent.items())
    blob = quote_identifier(column)
    payload = f"case typeof({blob}) when 'blob' then hex({blob}) when 'text' then {blob} else '' end as payload"
    kinds = ", ".join(map(str, PUSHED + STARTED))
    has = f"{blob} is not null and length({blob}) <= {2 * most}"
    return (
        f"select * from (select {chosen}, {payload} from {table_source(found)} where {has}) "
        f'where "start" is not null and "end" is not null and "type" in ({kinds})'
    )


def only_process(database: Database, among: tuple[Table, ...]) -> int:
    """The process of rows that name none: the only one that other tables name, else 0.

    Reads those others only when a table does not say whose its rows are, as only trimmed exports do not.
    """
    found = [(table, name) for table in among if (name := find(database, table)) is not None]
    known = [(name, tolerant(database, table, name).get(OWNER.name)) for table, name in found]
    if all(owner is not None for _, owner in known):
        return 0
    owners = [f"select {owner} as owner from {table_source(name)}" for name, owner in known if owner is not None]
    if not owners:
        return 0
    process = f"(owner >> 24) & {PROCESS_BITS}"
    sql = f"select min({process}) as low, max({process}) as high from ({' union all '.join(owners)})"
    extremes = database.table(sql)
    low, high = (extremes[name][0].as_py() for name in ("low", "high")) if extremes else (None, None)
    return low if low is not None and low == high else 0


# Of numbers stored as text only whole ones count.
_INTEGER_CELL = (
    "case typeof({0}) when 'integer' then {0} when 'real' then cast({0} as integer) "
    "when 'text' then case when {0} glob '*[0-9]' and {0} not glob '*[^0-9-]*' then cast({0} as integer) end end"
)
_NUMBER_CELL = "case when typeof({0}) in ('integer', 'real') then cast({0} as real) end"


def _columns(field: Field, columns: dict[str, str]) -> list[str]:
    return [quote_identifier(columns[name.lower()]) for name in field.accepts if name.lower() in columns]


def _expressions(
    database: Database, table: Table, found: str, expression: Callable[[Field, list[str]], str]
) -> dict[str, str]:
    columns = database.columns(found)
    present = {field: _columns(field, columns) for field in table.fields}
    return {field.name: expression(field, names) for field, names in present.items() if names}


def _plain(field: Field, columns: list[str]) -> str:
    return _first([*columns, "''"] if field.kind == TEXT else columns)


def _tolerant(field: Field, columns: list[str]) -> str:
    if field.kind == TEXT:
        return _first([*(f"substr(cast({column} as text), 1, {LONGEST_TEXT})" for column in columns), "''"])
    cell = _NUMBER_CELL if field.kind == NUMBER else _INTEGER_CELL
    return _first([cell.format(column) for column in columns])


def _first(values: list[str]) -> str:
    """The first that is not null."""
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
