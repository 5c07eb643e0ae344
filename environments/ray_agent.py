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
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

RESOURCE = "benchlib"  # a node that measures has one, and a job takes it: one at a time
FETCH_S, FILES = 60.0, 200  # of a node in one answer
CONNECT_S = 40.0  # Ray asks for ever where its token is refused
KEPT = ("measurements/[!.]*.parquet", "certificates/[!.]*.json", "timers/[!.]*.json", "jobs/[!.]*.log")
RESULTS = "jobs/[!.]*.result.json"


def place(store: str, node: str) -> Path:
    """The folder of a driver's results on this node."""
    return Path(sys.prefix).parents[1] / "outputs" / "ray" / node / store


@ray.remote(num_cpus=0)
class Job:
    """A job on its node. The actor ends with it; its files lie in the store until the driver, or another, is there."""

    def __init__(self, store: str, sent: str, text: str, result: str) -> None:
        own = ray.get_runtime_context().get_node_id()
        (node,) = (one["NodeName"] for one in ray.nodes() if one["NodeID"] == own)
        path = place(store, node) / "jobs" / f"{json.loads(text)['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.with_suffix(".result.json")
        if result and not before.exists():  # what another node had stays known until there is more
            before.write_text(result)
        path.write_text(text)
        path.with_suffix(".sent").write_text(sent)
        if niceness := os.nice(0):
            why = f"node {node} measures at niceness {niceness}: start its Ray with RAY_worker_niceness=0"
            before.write_text(json.dumps({"state": "unfit", "node": node, "host": node, "plan": {}, "why": why}))
            os._exit(0)
        project = Path(sys.prefix).parents[1]
        command = [str(project / ".venv" / "bin" / "python"), "-m", "benchlib", "job", str(path)]
        with path.with_suffix(".log").open("a") as log:
            given = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": project}
            dies_too = ["setpriv", "--pdeathsig", "KILL"]  # with the node
            process = subprocess.Popen([*dies_too, *command], env=_variables() | {"BENCHLIB_NODE": node}, **given)
        threading.Thread(target=lambda: os._exit(process.wait() * 0), daemon=True).start()


def _variables() -> dict[str, str]:
    """Those that Ray was started with on this node: Ray gives its workers others. GPUs are those of the job."""
    lines = Path(f"/proc/{os.getppid()}/environ").read_bytes().decode(errors="surrogateescape").split("\0")
    found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("RAY_"))
    if ray.get_gpu_ids():
        found["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    return found


@ray.remote(num_cpus=0, max_retries=0)
def fetch(store: str, node: str, sent: dict[str, str], known: dict[str, int]) -> dict[str, tuple[int, bytes]]:
    """Files of a store on this node that are not known yet: time and content, by place; a job's result after its files.
    A result is of the job as it was sent last: one that went on elsewhere has another there.
    """
    folder = place(store, node)

    def new(pattern: str) -> Iterator[Path]:
        for path in folder.glob(pattern):
            of = path.name.split(".")[0]
            ours = path.parent.name != "jobs" or path.with_name(f"{of}.sent").read_text() == sent.get(of)
            if ours and known.get(str(path.relative_to(folder))) != path.stat().st_mtime_ns:
                yield path

    def read(paths: Iterable[Path]) -> dict[str, tuple[int, bytes]]:
        found = {}
        for path in paths:
            with suppress(FileNotFoundError):  # damaged, and set aside meanwhile
                found[str(path.relative_to(folder))] = (path.stat().st_mtime_ns, path.read_bytes())
        return found

    results = read(new(RESULTS))  # before it is asked which files are there: those that results name are
    files = [path for pattern in KEPT for path in new(pattern)]
    return read(files[:FILES]) | (results if len(files) <= FILES else {})


class Agent:
    """Answers to what the engine asks: a method each."""

    def __init__(self, folder: str, address: str = "auto") -> None:
        if os.environ.get("RAY_AUTH_MODE") != "token":
            raise PermissionError("its ports are open to all: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN everywhere")
        self.folder, self.known = Path(folder), dict[str, dict[str, int]]()
        self.hosts: dict[str, str] = {}  # the node of each host
        self.gpus: dict[str, int] = {}  # that each job asks for
        host, _, port = address.rpartition(":")
        if port.isdigit():  # Ray would go on asking there, and say nothing
            socket.create_connection((host, int(port)), timeout=10).close()
        self.store = hashlib.sha256(f"{platform.node()} {os.getuid()} {folder}".encode()).hexdigest()[:16]
        ray.init(address, namespace=f"benchlib-{self.store}", log_to_driver=False, logging_level="ERROR")

    def states(self) -> dict[str, str]:
        """The jobs that wait or run; whatever is new comes home before the answer."""
        there = set(ray.util.list_named_actors())
        for name in there & self.gpus.keys():
            if not _nodes(self.gpus[name]):  # the nodes that could have taken it are gone
                ray.kill(ray.get_actor(name))
                there.remove(name)
        asked = [*_nodes().items()]
        while asked:
            name, number = asked.pop()
            known, memory = self._known(name)
            sent = {path.stem: path.read_text() for path in self.folder.glob("jobs/*.sent")}
            on = NodeAffinitySchedulingStrategy(number, soft=False)
            try:
                answer = fetch.options(scheduling_strategy=on).remote(self.store, name, sent, known)
                found = ray.get(answer, timeout=FETCH_S)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError:  # it is gone, or busy: then nobody knows what it has, and nothing is sent
                time.sleep(1)
                asked += [(name, number)] * (_nodes().get(name) == number)
                continue
            self._write(name, found, known)
            if found:
                memory.write_text(json.dumps(known))
                asked.append((name, number))  # until it has nothing new
        return dict.fromkeys(there, "there")

    def _known(self, node: str) -> tuple[dict[str, int], Path]:
        """The files of a node that have come home, with their times; and where that is kept."""
        memory = self.folder / "jobs" / f".{node}.json"
        if node not in self.known:
            self.known[node] = json.loads(memory.read_text()) if memory.is_file() else {}
        return self.known[node], memory

    def _write(self, node: str, found: dict[str, tuple[int, bytes]], known: dict[str, int]) -> None:
        for own, (time_ns, content) in found.items():
            if own.endswith(".result.json"):
                said = json.loads(content)  # of another node, as long as this one has not begun
                other = self.hosts.setdefault(host := said["host"], said["node"])
                if said["node"] == node != other and other in _nodes():
                    raise LookupError(f"the nodes {other} and {node} are both the host {host}: set BENCHLIB_HOST there")
            path = self.folder / own
            if own in known or not own.startswith("measurements") or not path.exists():  # rows from here stay
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(f".{path.name}")
                partial.write_bytes(content)
                partial.replace(path)
            known[own] = time_ns

    def submit(self, name: str, text: str, gpus: int, node: str, without: list[str]) -> dict[str, str]:
        """Have Ray place a job: on ``node`` if it is there, else on any that is not among those ``without``."""
        if name in ray.util.list_named_actors():
            return {}  # it is on its way
        fit = {one: number for one, number in _nodes(gpus).items() if one not in without}
        if not fit:
            asked = f"--resources='{{\"{RESOURCE}\": 1}}'" + f" and {gpus} GPUs" * bool(gpus)
            raise LookupError(f"there is no {'other ' * bool(without)}node with {asked}")
        chosen = node if node in fit else random.choice([*fit]) if without else ""
        on = NodeAffinitySchedulingStrategy(fit[chosen], soft=False) if chosen else "DEFAULT"
        path = self.folder / "jobs" / f"{json.loads(text)['name']}.json"
        path.with_suffix(".sent").write_text(sent := str(time.time_ns()))
        result = path.with_suffix(".result.json")
        given = self.store, sent, text, result.read_text() if result.is_file() else ""
        asked = {"name": name, "lifetime": "detached", "resources": {RESOURCE: 1}, "num_gpus": gpus}
        Job.options(**asked, scheduling_strategy=on).remote(*given)
        self.gpus[name] = gpus
        return {}


def _nodes(gpus: int = 0) -> dict[str, str]:
    """The nodes that measure and have so many GPUs, by name."""
    every = [(one, one["Resources"]) for one in ray.nodes() if one["Alive"]]
    fit = (one for one, has in every if has.get(RESOURCE, 0) >= 1 and has.get("GPU", 0) >= gpus)
    return {one["NodeName"]: one["NodeID"] for one in fit}


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Ray prints is no answer
    agent = None

    def give_up() -> None:
        where = " ".join(sys.argv[2:]) or "a Ray of this machine"
        said = f"no answer from {where} in {CONNECT_S:g} s: start it, with the same RAY_AUTH_TOKEN"
        print(json.dumps({"error": said}), file=answers, flush=True)
        os._exit(1)

    for line in sys.stdin:
        do, *given = json.loads(line)
        connecting = threading.Timer(CONNECT_S, give_up)
        try:
            if agent is None:
                connecting.start()
                agent = Agent(*sys.argv[1:])
            connecting.cancel()
            answer = getattr(agent, do)(*given)
        except Exception as error:
            connecting.cancel()
            where = f" ({' '.join(sys.argv[2:])})" if isinstance(error, OSError) else ""
            answer = {"error": f"{type(error).__name__}: {error}{where}"}
        with suppress(BrokenPipeError):  # the driver is gone
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
