"""Where jobs run: on this machine, or where Slurm or Ray places them. Engines know a job by its name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib import environments
from benchlib.errors import BenchlibError

VARIABLE = "BENCHLIB_ON"  # the engine and its options: ``slurm --partition=gpu --time=60``
NODE = "BENCHLIB_NODE"  # in a job: the name by which its engine knows the node
SCRIPT = f'#!/bin/sh\nexport {NODE}=$SLURMD_NODENAME BENCHLIB_HOST="$SLURMD_NODENAME.$SLURM_CLUSTER_NAME"\nexec "$@"\n'
LOST = re.compile(r"PENDING\|[^|]+\|.*(Down|NotAvail|Unavail|DRAIN)")  # it waits for a node, for that reason


@dataclass
class Local:
    """One job after another, on this machine, for a folder of results."""

    folder: Path
    options: Sequence[str] = ()

    def states(self) -> dict[str, str]:
        """The jobs that wait or run, by name: ``there``, or ``lost`` with the node that they wait for."""
        return {}

    def submit(self, name: str, command: Sequence[str], log: Path, gpus: int, node: str, without: list[str]) -> None:
        """Have a command run as a job, on ``node`` if it has begun there, not on those ``without`` what it needs."""
        if without:
            raise BenchlibError("there is no other machine")
        with log.open("a", encoding="utf-8") as file:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False)

    def cancel(self, name: str) -> None: ...


class Slurm(Local):
    """Whole nodes by ``sbatch``, with the user's own ``options`` (--partition, --time ...)."""

    def states(self) -> dict[str, str]:
        every = (line.split("|", 1) for line in _ask("squeue", "--me", "-h", "--format=%j|%T|%n|%r").splitlines())
        return {name: "lost" if LOST.search(rest) else "there" for name, rest in every}

    def submit(self, name: str, command: Sequence[str], log: Path, gpus: int, node: str, without: list[str]) -> None:
        asked = [f"--job-name={name}", "--exclusive", "--nodes=1", "--open-mode=append", f"--output={log}"]
        asked += [f"--gres=gpu:{gpus}"] * bool(gpus) + [f"--nodelist={node}"] * bool(node)
        asked += [f"--exclude={','.join(without)}"] * bool(without)
        _ask("sbatch", *asked, *self.options, "/dev/stdin", *command, script=SCRIPT)

    def cancel(self, name: str) -> None:
        _ask("scancel", f"--name={name}")


@dataclass
class Ray(Local):
    """Nodes of Ray, by an agent in the environment ``ray``, which brings home what they keep; the option: HOST:PORT."""

    agent: Any = None

    def states(self) -> dict[str, str]:
        return self._ask("states")

    def submit(self, name: str, command: Sequence[str], log: Path, gpus: int, node: str, without: list[str]) -> None:
        self._ask("submit", name, Path(command[-1]).read_text(encoding="utf-8"), gpus, node, without)

    def _ask(self, *asked: Any) -> dict[str, str]:
        agent, self.agent = self.agent, None  # after an interrupt another one: its answer would be to this question
        if agent is None:
            script = environments.requirements_file("ray").with_name("ray_agent.py")
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
            agent = subprocess.Popen([environments.find("ray").python, script, self.folder, *self.options], **pipes)
        with suppress(OSError):
            print(json.dumps(asked), file=agent.stdin, flush=True)
        answer = json.loads(agent.stdout.readline() or '{"error": "its agent has ended"}')
        if "error" in answer:
            raise BenchlibError(f"ray: {answer['error']}: see ray status, and docs/machines.md")
        self.agent = agent
        return answer


ENGINES = {"local": Local, "slurm": Slurm, "ray": Ray}


def _ask(program: str, *arguments: str, script: str = "") -> str:
    if shutil.which(program) is None:
        raise BenchlibError(f"slurm: {program} is not on PATH: run this where jobs are submitted, or leave --on out")
    for wait_s in (0, 5, 30, 120):  # a controller that is started again answers later, and its jobs run on
        time.sleep(wait_s)
        done = subprocess.run([program, *arguments], input=script, capture_output=True, text=True, check=False)
        if done.returncode == 0 or program != "squeue":
            break
    if done.returncode:
        raise BenchlibError(f"slurm: {program}: {done.stderr.strip()}: see sinfo, and the options after slurm in --on")
    return done.stdout
