"""How long does a profile take on many hosts? A simulation of jobs, from the costs that a folder of results has.

    .venv/bin/python benchmarks/many_hosts.py outputs/quick [--times 100] [--gate-s 11] [--start-s 3]

Measures nothing. A job is a comparison or a condition's training runs, as `--on` sends them, with the seconds of its
processes in the folder; each is there ``--times`` times, as if that many models had been asked for. Hosts are alike and
take the longest job that is left. Before its first job of a model a host runs the gate of its conditions (``--gate-s``
each, see ``gate_seconds.py``); with certificates shared by their hash only the first host does. A job starts
``--start-s`` late. The table has, for each number of hosts, the hours to the end, how busy hosts are, and how much
longer that takes than the work divided evenly.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchlib.cache import Store

HOSTS = (1, 2, 4, 10, 30, 100, 300, 1000)


@dataclass(frozen=True)
class Job:
    """What is sent to one host."""

    model: str
    conditions: int
    seconds: float  # of its processes


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="A profile on many hosts, simulated.")
    parser.add_argument("folder", type=Path, help="the results of a run")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--gate-s", type=float, default=11.0)
    parser.add_argument("--start-s", type=float, default=3.0)
    given = parser.parse_args()
    own = jobs(given.folder)
    every = [Job(f"{one.model} {copy}", one.conditions, one.seconds) for copy in range(given.times) for one in own]
    print(
        f"{len(own)} jobs of {len({one.model for one in own})} models, {sum(one.seconds for one in own) / 60:.0f} min"
    )
    rows = []
    for hosts in HOSTS:
        row: dict[str, float] = {"hosts": hosts}
        for how, shared in (("own gates", False), ("shared gates", True)):
            ends, work = simulate(every, hosts, given.gate_s, given.start_s, shared)
            row |= {f"hours, {how}": round(ends / 3600, 2), f"busy %, {how}": round(100 * work / ends / hosts)}
        rows.append(row)
    print(pd.DataFrame(rows).to_string(index=False))


def jobs(folder: Path) -> list[Job]:
    """The jobs that a folder's measurements were, and the seconds that each took."""
    found: dict[tuple[str, ...], Job] = {}
    store = Store(folder / "measurements")
    for path in sorted(store.folder.glob("[!.]*.parquet")):  # a repetition of a comparison, or training runs
        together = store.load(path.stem) or []
        conditions = tuple(sorted({str(one.condition) for one in together}))
        seconds = together[0].repetition_s or 0.0
        if together[0].kind != "comparison":
            seconds = sum(epoch.wall_s for one in together for epoch in one.epochs)
        key = (together[0].kind, *conditions)
        before = found.get(key)
        model = together[0].condition.workload
        found[key] = Job(model, len(conditions), seconds + (before.seconds if before else 0.0))
    return list(found.values())


def simulate(every: list[Job], hosts: int, gate_s: float, start_s: float, shared: bool) -> tuple[float, float]:
    """Seconds until all is done, and those in which hosts were at work."""
    free = [(0.0, host) for host in range(hosts)]
    certified: dict[int, set[str]] = {}
    work = 0.0
    for job in sorted(every, key=lambda one: -one.seconds):
        now, host = heapq.heappop(free)
        known = certified.setdefault(0 if shared else host, set())
        takes = start_s + job.seconds + (0.0 if job.model in known else gate_s * job.conditions)
        known.add(job.model)
        work += takes
        heapq.heappush(free, (now + takes, host))
    return max(end for end, _ in free), work


if __name__ == "__main__":
    main()
