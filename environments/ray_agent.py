"""Ray's side of ``benchlib run --on ray``: it places jobs on nodes, and brings home what they have kept.

    .environments/ray/bin/python environments/ray_agent.py FOLDER [HOST:PORT]

The engine starts it, writes a question a line (JSON) and reads an answer a line. It imports nothing of benchlib. A node
measures with the ``.venv`` beside the ``.environments/ray`` that its Ray is started from.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

RESOURCE = "benchlib"  # a node that measures has one, and a job takes it: one at a time
FETCH_S = 60.0  # a node that brings nothing home within this is asked again later
KEPT = ("measurements/[!.]*.parquet", "certificates/[!.]*.json", "timers/[!.]*.json", "jobs/[!.]*.log")
RESULTS = "jobs/[!.]*.result.json"


def place(store: str, node: str) -> Path:
    """The folder of a driver's results on this node."""
    return Path(sys.prefix).parents[1] / "outputs" / "ray" / node / store


@ray.remote(num_cpus=0)
class Job:
    """A job on its node. The actor ends with it; its files lie in the store until the driver, or another, is there."""

    def __init__(self, store: str, sent: str, text: str) -> None:
        own = ray.get_runtime_context().get_node_id()
        (node,) = (one["NodeName"] for one in ray.nodes() if one["NodeID"] == own)
        path = place(store, node) / "jobs" / f"{json.loads(text)['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.with_suffix(".sent").write_text(sent)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        variables.pop("OMP_NUM_THREADS", None)  # Ray sets it to 1
        project = Path(sys.prefix).parents[1]
        command = [str(project / ".venv" / "bin" / "python"), "-m", "benchlib", "job", str(path)]
        with path.with_suffix(".log").open("a") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],  # a node that is killed measures no more
                cwd=project, env=variables | {"BENCHLIB_NODE": node}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        threading.Thread(target=lambda: os._exit(process.wait() * 0), daemon=True).start()


@ray.remote(num_cpus=0, max_retries=0)
def fetch(store: str, node: str, sent: dict[str, str], known: dict[str, int]) -> dict[str, tuple[int, bytes]]:
    """The files of a store on this node that are not known yet: time and content, by place; a job's result after its
    files. A result is of the job as it was sent last: one that went on elsewhere has another there.
    """
    folder, found = place(store, node), dict[str, tuple[int, bytes]]()
    for pattern in (RESULTS, *KEPT):  # results are read first: the files that they name are there
        for path in folder.glob(pattern):
            of, time_ns, own = path.name.split(".")[0], path.stat().st_mtime_ns, str(path.relative_to(folder))
            ours = path.parent.name != "jobs" or path.with_name(f"{of}.sent").read_text() == sent.get(of)
            if ours and known.get(own) != time_ns:
                found[own] = (time_ns, path.read_bytes())
    return dict(reversed(found.items()))


class Agent:
    """Answers to what the engine asks: a method each."""

    def __init__(self, folder: str, address: str = "auto") -> None:
        self.folder, self.known = Path(folder), dict[str, dict[str, int]]()
        self.hosts: dict[str, str] = {}  # the node of each host
        self.store = hashlib.sha256(f"{platform.node()} {os.getuid()} {folder}".encode()).hexdigest()[:16]
        ray.init(address, namespace=f"benchlib-{self.store}", log_to_driver=False, logging_level="ERROR")

    def states(self) -> dict[str, str]:
        """The jobs that wait or run; whatever is new comes home before the answer."""
        there = dict.fromkeys(ray.util.list_named_actors(), "there")
        sent = {path.stem: path.read_text() for path in self.folder.glob("jobs/*.sent")}
        asked = {}
        for node in _nodes():
            name, on = node["NodeName"], NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            known = self.known.setdefault(name, {})
            asked[name] = fetch.options(scheduling_strategy=on).remote(self.store, name, sent, known)
        for name, found in asked.items():
            try:
                self._write(name, ray.get(found, timeout=FETCH_S))
            except ray.exceptions.RayError:
                continue  # it is gone, or busy: the job, if it is lost, is not among those that are there
        return there

    def _write(self, node: str, found: dict[str, tuple[int, bytes]]) -> None:
        for own, (time_ns, content) in found.items():
            if own.endswith(".result.json"):
                host = json.loads(content)["host"]
                if (other := self.hosts.setdefault(host, node)) != node:
                    raise LookupError(f"the nodes {other} and {node} are both the host {host}: set BENCHLIB_HOST there")
            path = self.folder / own
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}")
            partial.write_bytes(content)
            partial.replace(path)
            self.known[node][own] = time_ns

    def submit(self, name: str, text: str, gpus: int, node: str, without: list[str]) -> dict[str, str]:
        """Have Ray place a job: on ``node`` if it is there, else on any that is not among those ``without``."""
        if name in ray.util.list_named_actors():
            return {}  # it is on its way
        fit = {one["NodeName"]: one["NodeID"] for one in _nodes() if one["Resources"].get("GPU", 0) >= gpus}
        if not (fit := {one: its for one, its in fit.items() if one not in without}):
            asked = f"--resources='{{\"{RESOURCE}\": 1}}'" + f" and {gpus} GPUs" * bool(gpus)
            raise LookupError(f"there is no other node with {asked}" if without else f"there is no node with {asked}")
        chosen = node if node in fit else random.choice([*fit]) if without else ""
        on = NodeAffinitySchedulingStrategy(fit[chosen], soft=False) if chosen else "DEFAULT"
        sent, own = str(time.time_ns()), self.folder / "jobs" / f"{json.loads(text)['name']}.sent"
        own.write_text(sent)
        asked = {"name": name, "lifetime": "detached", "resources": {RESOURCE: 1}, "num_gpus": gpus}
        Job.options(**asked, scheduling_strategy=on).remote(self.store, sent, text)
        return {}


def _nodes() -> list[dict[str, Any]]:
    return [one for one in ray.nodes() if one["Alive"] and one["Resources"].get(RESOURCE)]


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Ray prints is no answer
    agent = None
    for line in sys.stdin:
        do, *given = json.loads(line)
        try:
            agent = agent or Agent(*sys.argv[1:])
            answer = getattr(agent, do)(*given)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
