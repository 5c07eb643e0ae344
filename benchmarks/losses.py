"""Do frameworks stay together beyond the gate's few steps? Losses from the same weights and batches.

    [BENCHLIB_DATA=FOLDER] .venv/bin/python benchmarks/losses.py cnn gru bert [--steps 50] [--originals]
        [--learning-rate 0.0001]
    ... losses.py resnet50 googlenet --originals --every-step --batch-size 128

PyTorch eager in the lane ``default`` is the reference, as in the gate. Compared with it are PyTorch in the lane
``tuned``, which computes the same with other instructions and so shows what rounding alone does, and every other
framework that is there, MindSpore or one in an environment of its own, in eager and in graph mode. The largest relative
difference of a loss so far is printed beside the gate's tolerance. Each step has a batch of its own. ``--originals``
takes CIFAR-10 or IMDB where the workload has it, IMDB in the length that is trained, else embedded data.

Each goes its own way from the same initial weights, with batches of the size that the gate takes, dropout off, and the
biases of batch normalisation, Adam's epsilon and the rate of the gate, which keep rounding small; weight decay, warm-up
and clipping are the workload's own. A deep model with ReLU makes rounding grow from step to step all the same, until
two lanes of PyTorch are apart. ``--every-step`` asks what can be asked of such a model: the reference trains with the
workload's own settings, only dropout is off, and before each step the others are given the weights that it then has.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import homes
import numpy as np
import pandas as pd

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import compare, gate
from benchlib.equivalence.tolerances import TOLERANCES
from benchlib.progress import say
from benchlib.runner import recording
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.runner.processes import WorkerFailed, WorkerProcess

INPUTS = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "losses"
MODES = {"pytorch": ("eager",)}  # of the others both
SIZES = {
    "cnn": {"image_size": 8},
    "resnet50": {"image_size": 32},
    "googlenet": {"image_size": 32},
    "gru": {"length": 8},
    "lstm": {"length": 16},
    "seq2seq": {"length": 6},
    "bert": {},
}
ORIGINALS = ("cifar10", "imdb")
THEIR_OWN = ("weight_decay", "warm_up", "clip")  # set in the gate only because three steps would not show them


def main() -> None:
    """Print the table: a row for each workload, framework and mode."""
    parser = argparse.ArgumentParser(description="Losses of frameworks, step by step.")
    parser.add_argument("workloads", nargs="+", choices=SIZES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--originals", action="store_true")
    parser.add_argument("--learning-rate", type=float, help="in place of the gate's, or the workload's own")
    parser.add_argument("--batch-size", type=int, help="in place of the gate's, or the workload's own")
    parser.add_argument("--every-step", action="store_true", help="the same weights before every step")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.workloads:
        subjects = [
            _condition(name, framework, mode, arguments)
            for framework in homes.there(name)
            for mode in MODES.get(framework, ("eager", "graph"))
        ]
        with tempfile.TemporaryDirectory() as folder:  # of the reference's weights: gigabytes, with --every-step
            given = {"steps": arguments.steps, "weights": Path(folder) if arguments.every_step else None}
            expected = losses(gate.reference(subjects[0]), leads=True, **given)
            for condition in subjects:
                apart = np.abs(losses(condition, leads=False, **given) - expected) / np.abs(expected)
                rows.append(_row(condition, apart, expected))
                print(pd.DataFrame(rows).to_string(index=False), flush=True)


def losses(condition: Condition, steps: int, weights: Path | None, leads: bool) -> np.ndarray:
    """The losses (steps,) of a condition in a fresh process. In the folder ``weights`` it leaves those before every
    step, if it ``leads``, or takes them from there.
    """
    job = prepare_job(condition, INITIAL_SEED, INPUTS)
    files = [weights and str(weights / f"{step}.npz") for step in range(steps)]
    try:
        with hold_machine(say), WorkerProcess(condition, INITIAL_SEED) as worker:
            worker.finish_open()
            recording.require_inputs(worker, job, worker.ask("build", **job.document()))
            asked = (
                worker.ask("train_on", step=step, weights=file, leads=leads, restarts=False)
                for step, file in enumerate(files)
            )
            return np.array([answer["loss"] for answer in asked])
    except WorkerFailed as failure:
        raise SystemExit(f"{condition}: {failure}") from None


def _condition(name: str, framework: str, mode: str, arguments: argparse.Namespace) -> Condition:
    offered = workloads.load(name).data
    data = next((one for one in ORIGINALS if arguments.originals and one in offered), offered[0])
    asked = Condition(
        workload=name,
        framework=framework,
        environment=homes.ENVIRONMENTS[framework],
        mode=mode,
        lane="tuned",
        data=data,
        hyperparameters={} if data == "imdb" else SIZES[name],
    )
    if arguments.every_step:
        off = {key: 0.0 for key in asked.hyperparameters if key.endswith("dropout")}
        condition = asked.but(hyperparameters={**asked.hyperparameters, **off})
    else:
        neutral = compare.neutralise(gate.adapt(asked))
        own = {key: value for key, value in asked.hyperparameters.items() if key in THEIR_OWN}
        condition = neutral.but(hyperparameters={**neutral.hyperparameters, **own})
    return condition.but(
        batch_size=arguments.batch_size or condition.batch_size,
        learning_rate=arguments.learning_rate or condition.learning_rate,
    )


def _row(condition: Condition, apart: np.ndarray, expected: np.ndarray) -> dict[str, object]:
    beyond = np.flatnonzero(apart > TOLERANCES["losses"])
    places = sorted({min(step, len(apart)) for step in (3, 10, 25, len(apart))})
    return {
        "workload": condition.workload,
        "data": condition.data,
        "subject": f"{condition.framework} {condition.mode} {condition.lane}",
        "batch": condition.batch_size,
        "rate": condition.learning_rate,
        "loss": f"{expected[0]:.3f} to {expected[-1]:.3f}",
        **{f"to step {step}": f"{apart[:step].max():.1e}" for step in places},
        "tolerance": f"{TOLERANCES['losses']:.0e}",
        "first step beyond": int(beyond[0]) + 1 if len(beyond) else "-",
    }


if __name__ == "__main__":
    main()
