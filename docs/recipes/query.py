"""What a history holds as tables: the rows are Parquet files, of which anything that reads these makes one table."""

import sys

import pandas as pd  # noqa: TID251
import pyarrow.dataset as ds

rows = ds.dataset(f"{sys.argv[1]}/rows", format="parquet").to_table().to_pandas(maps_as_pydicts="lossy")
rows = rows.drop(columns="entry").sort_values("time")

# The median time of a step by week and series, in ms.
weeks = pd.Grouper(key="time", freq="W")
print(rows.groupby(["project", "config", weeks], dropna=False)["unit_ns"].median() / 1e6)

# What share of a step each line of the ledger has, capture by capture.
lines = pd.DataFrame(rows["lines_ns"].tolist(), index=rows["time"]).fillna(0)
print(lines.div(lines.sum(axis=1), axis=0).round(3))
