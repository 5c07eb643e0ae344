"""A worker that ``profiles.py`` and ``losses.py`` drive by themselves, in a fresh process with all its knobs."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchlib import environments, knobs
from benchlib.condition import Condition
from benchlib.measure import processes
from benchlib.measure.jobs import INITIAL_SEED, prepare_job
from benchlib.measure.turn import turn
from benchlib.progress import say
from benchlib.worker.service import Worker


def asked(script: str, condition: Condition, inputs: Path, **more: Any) -> Any:
    """What ``script --child JSON`` prints last, as JSON; it gets the condition, its job and ``more``."""
    job = prepare_job(condition, INITIAL_SEED, inputs)
    given = {"condition": condition.model_dump(), "job": job.document(), **more}
    command = [environments.find(condition.environment).python, script, "--child", json.dumps(given)]
    with turn(say), tempfile.TemporaryDirectory() as scratch:
        environment = processes.environment(condition, Path(scratch))
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{condition}: its process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def worker(given: dict[str, Any]) -> Worker:
    """In the child: a worker that has built what it was given; nobody asks it over a channel."""
    condition = Condition(**given["condition"])
    built = Worker(None)
    built.do_open(
        framework=condition.framework,
        device=condition.device,
        mode=condition.mode,
        precision=condition.precision,
        seed=INITIAL_SEED,
        cpus=None,
        world_size=1,
        communication=True,
        knobs=knobs.for_session(condition),
    )
    built.do_build(**given["job"])
    return built
