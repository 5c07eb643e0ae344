"""What the trials of ``faults.py`` disturb: one small measurement, or run of the suite, in a process of its own.

    fault_subject.py KIND OUTPUTS

Ends as the command line does: 0, 1 if a measurement failed, 2 with a message for what a user can mend, 130 after
Ctrl-C. Workers take turns by a lock beside this process's temporary folder, not by the machine's: what is measured here
is thrown away, and a trial that waited for another's measurement would say nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchlib.frameworks
import benchlib.workloads
from benchlib import env_vars
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.runner import machine_lock
from benchlib.study import Study

ROOT = Path(__file__).resolve().parents[1]
DOUBLES = ROOT / "tests" / "doubles"
SHADOWED = "BENCHLIB_FAULTS_SHADOWS"
"""Names a folder of modules that a user's PYTHONPATH has while workers start, but had not when this process did."""

BEGUN = "begun"
"""The file beside the folder for temporary files that says so."""

PATIENCE_S = 40.0
"""Silence after which a worker counts as hung, in place of a quarter of an hour: with too little memory a product of
matrices may never return, as OpenBLAS waits for a thread that it could not start.
"""

COMPARED = {"precision": 0.9, "budget_s": 12.0, "block_s": 0.02, "pilot": 3}
CNN = {"workload": "cnn", "hyperparameters": {"image_size": 8}, "train_samples": 160, "threads": 1}


def know_doubles() -> None:
    """Make the tests' framework and workload known to this process."""
    benchlib.frameworks.__path__.append(str(DOUBLES / "frameworks"))
    benchlib.workloads.__path__.append(str(DOUBLES / "workloads"))


def prepare() -> None:
    """Make the tests' framework and workload known here and to workers, and the turn this folder's own."""
    know_doubles()
    os.environ[env_vars.WORKER_PATH] = str(DOUBLES)
    machine_lock.LOCK = Path(os.environ["TMPDIR"]).with_name("turn.lock")
    if shadows := os.environ.get(SHADOWED):
        os.environ["PYTHONPATH"] = shadows


def begin() -> None:
    """Say that all is imported. An interrupt before that is met by nobody, in whatever program."""
    Path(os.environ["TMPDIR"]).with_name(BEGUN).touch()


def toy(world_size: int = 1, framework: str = "toy", **hyperparameters: Any) -> Condition:
    """A condition of the tests' own workload."""
    return Condition(
        workload="toy", framework=framework, world_size=world_size, threads=1, hyperparameters=hyperparameters
    )


def comparison(lab: Lab) -> bool:
    """Two comparisons of two conditions. Did all go well, as of the others?"""
    groups = [[toy(), toy(burn_ms=3.0)], [toy(burn_ms=2.5), toy(burn_ms=1.5)]]
    return not any(len(one.failures()) for one in lab.compare_each(groups, **COMPARED))


def group(lab: Lab) -> bool:
    """One process against two that train together."""
    return not len(lab.compare([toy(), toy(2)], **COMPARED).failures())


def training(lab: Lab) -> bool:
    """Four training runs, two at a time."""
    return not len(lab.train([toy(), toy(burn_ms=3.0)], seeds=[0, 1], epochs=4).failures())


def gate(lab: Lab) -> bool:
    """The gate with a process of its own for each of four models, one of which is another."""
    conditions = [toy(), toy(framework="twin"), toy(framework="toy_queued"), toy(2)]
    return all(one.checks for one in lab.certify(conditions).values())


def pytorch(lab: Lab) -> bool:
    """Two training runs in PyTorch."""
    return not len(lab.train([Condition(framework="pytorch", **CNN)], seeds=[0, 1], epochs=1).failures())


def mindspore(lab: Lab) -> bool:
    """Two training runs in MindSpore."""
    trained = Condition(workload="gcn", framework="mindspore", mode="graph", lane="tuned")
    return not len(lab.train([trained], seeds=[0, 1], epochs=3).failures())


def pytorch_group(lab: Lab) -> bool:
    """The gate, for two processes that torchrun starts."""
    together = Condition(framework="pytorch", world_size=2, batch_size=4, **CNN)
    return all(one.checks for one in lab.certify([together]).values())


def mindspore_group(lab: Lab) -> bool:
    """The gate, for two processes that msrun starts."""
    together = Condition(framework="mindspore", mode="graph", world_size=2, batch_size=4, **CNN)
    return all(one.checks for one in lab.certify([together]).values())


KINDS: dict[str, Callable[[Lab], bool]] = {
    one.__name__: one for one in (comparison, group, training, gate, pytorch, mindspore, pytorch_group, mindspore_group)
}
SUITE = "suite"
"""``benchlib run`` of a notebook that compares and trains, and of a report."""


def study(outputs: str | None) -> Study:
    """What the suite's notebook measures."""
    made = Study(
        "measuring", title="of the trials", question="", settings={**COMPARED, "margin": 0.05}, outputs=outputs
    )
    made.compare([toy(), toy(burn_ms=3.0)])
    made.train([toy()], seeds=[0, 1], epochs=2)
    return made


def _suite(outputs: str) -> int:
    from benchlib.cli import main as run

    begin()
    return run(["run", "--profile", "tiny", "--outputs", outputs])


def main() -> int:
    """Measure; the exit code."""
    kind, outputs = sys.argv[1:]
    prepare()
    if kind == SUITE:
        return _suite(outputs)
    try:
        begin()
        return 0 if KINDS[kind](Lab(outputs=outputs, patience_s=PATIENCE_S)) else 1
    except BenchlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
