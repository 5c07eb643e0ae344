"""The ratios of millions of rows, by DuckDB over the files of a folder of results: how soon, in how much memory?

    .venv/bin/benchlib environment create duckdb
    .environments/duckdb/bin/python benchmarks/many_rows.py outputs/quick                           # its ratios
    .environments/duckdb/bin/python benchmarks/many_rows.py outputs/quick --make 10000000 --to DIR  # made-up rows
    .environments/duckdb/bin/python benchmarks/many_rows.py DIR

A ratio is what the report says: logarithms of seconds for a sample, differences within rounds, means by pair of
processes, Student's interval over the pairs; the last undisturbed take of a block counts. Certificates, slowing down
and the share of disturbed rounds are not looked at here. Made-up rows are a run's own
with other keys and times, each comparison anew; what their processes were made of (packages, knobs) is the same.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

from scipy.stats import t

RATIOS = """
with good as (
    select "group", repetition, role, label, list_filter(blocks, lambda b: not b.disturbed) as blocks
    from read_parquet('{files}') where kind = 'comparison' and failure is null
), taken as (  -- of a round that was taken again, the last
    select * replace (case when len(blocks) = len(list_distinct(list_transform(blocks, lambda b: b.round))) then blocks
        else list_filter(blocks, lambda b, i: not list_contains(
            list_transform(blocks[i + 1:], lambda c: c.round), b.round)) end as blocks) from good
), rows as (
    select "group", repetition, role, label, list_transform(blocks, lambda b: b.round) as rounds,
        list_transform(blocks, lambda b: ln(b.wall_s / b.samples)) as logs from taken
), pairs as (
    select "group", other.role, other.label, case when base.rounds = other.rounds
        then list_avg(base.logs) - list_avg(other.logs)
        else list_avg(list_transform(list_filter(range(1, len(other.rounds) + 1),
                lambda i: list_contains(base.rounds, other.rounds[i])),
            lambda i: base.logs[list_position(base.rounds, other.rounds[i])] - other.logs[i])) end as log
    from rows as other join rows as base using ("group", repetition)
    where base.role = 'baseline' and other.role <> 'baseline'
)
select "group", label, role, processes, exp(log) as ratio, exp(log - quantile * error) as low,
    exp(log + quantile * error) as high
from (select "group", label, role, count(log) as processes, avg(log) as log,
          stddev_samp(log) / sqrt(count(log)) as error from pairs group by all)
left join quantiles using (processes) where processes > 0
"""

MOST = 1000  # processes of a condition, whose interval is given

MADE = """
copy (
    select * exclude (copy) replace ("group" || '-' || copy as "group",
        list_transform(blocks, lambda b: struct_update(b, wall_s := b.wall_s * (0.99 + 0.02 * random()))) as blocks)
    from (select * exclude (trace) from read_parquet('{files}')), range({first}, {last}) as copies(copy)
) to '{to}' (format parquet, compression zstd)
"""


def main() -> None:
    """Write ratios.csv beside the measurements, or made-up measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", type=int, metavar="ROWS", help="write so many made-up rows instead")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where made-up rows go")
    parser.add_argument("--memory", default="3GB", help="that DuckDB may take; more goes to disk")
    given = parser.parse_args()
    import duckdb  # in an environment of its own

    files = str(given.folder / "measurements" / "*.parquet")
    database = duckdb.connect(config={"memory_limit": given.memory, "preserve_insertion_order": False})
    if given.make:
        make(database, files, given.make, given.to / "measurements")
        return
    started = time.monotonic()
    database.execute("create table quantiles (processes bigint, quantile double)")
    students = [(count, float(t.ppf(0.975, count - 1))) for count in range(2, MOST + 1)]
    database.executemany("insert into quantiles values (?, ?)", students)
    ratios = f"({RATIOS.format(files=files)}) to '{given.folder / 'ratios.csv'}' (header)"
    (found,) = database.execute(f"copy {ratios}").fetchone()
    seconds = time.monotonic() - started
    (rows,) = database.execute(f"select count(*) from read_parquet('{files}')").fetchone()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rows} rows, {found} ratios: {seconds:.1f} s, {peak:.2f} GiB at most")


def make(database: Any, files: str, rows: int, folder: Path) -> None:
    """Write a file for each million or so of made-up rows."""
    folder.mkdir(parents=True)
    (own,) = database.execute(f"select count(*) from read_parquet('{files}')").fetchone()
    copies, step = -(-rows // own), max(1, 1_000_000 // own)
    for first in range(0, copies, step):
        last, to = min(first + step, copies), folder / f"made-{first}.parquet"
        database.execute(MADE.format(files=files, first=first, last=last, to=to))
        print(f"{last * own} rows", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
