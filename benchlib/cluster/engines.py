"""Where jobs run: on this machine, or where Slurm places them. A job is a command; engines know it by its name only."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib.errors import BenchlibError

VARIABLE = "BENCHLIB_ON"  # the engine and its options: ``slurm --partition=gpu --time=60``
SCRIPT = '#!/bin/sh\nexport BENCHLIB_HOST="$SLURMD_NODENAME.$SLURM_CLUSTER_NAME"\nexec "$@"\n'
LOST = re.compile("Down|NotAvail|Unavail|DRAIN")  # in the reason why a job waits for a node


@dataclass
class Local:
    """One job after another, on this machine."""

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
        lines = _ask("squeue", "--me", "-h", "--format=%j|%T|%n|%r").splitlines()
        every = (line.split("|", 3) for line in lines)  # with the node that was asked for, and why it waits
        away = {name: node and state == "PENDING" and LOST.search(why) for name, state, node, why in every}
        return {name: "lost" if so else "there" for name, so in away.items()}

    def submit(self, name: str, command: Sequence[str], log: Path, gpus: int, node: str, without: list[str]) -> None:
        asked = [f"--job-name={name}", "--exclusive", "--nodes=1", "--open-mode=append", f"--output={log}"]
        asked += [f"--gres=gpu:{gpus}"] * bool(gpus) + [f"--nodelist={node}"] * bool(node)
        asked += [f"--exclude={','.join(without)}"] * bool(without)
        _ask("sbatch", *asked, *self.options, "/dev/stdin", *command, script=SCRIPT)

    def cancel(self, name: str) -> None:
        _ask("scancel", f"--name={name}")


ENGINES = {"local": Local, "slurm": Slurm}


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
