"""Why does the equivalence gate compare gradients in several trials, and the middle one of them counts?

    BENCHLIB_DATA=FOLDER python benchmarks/kinks.py

takes images of CIFAR-10 from FOLDER (the archive or unpacked; without the variable: ``digits``, enlarged) and compares
PyTorch with itself: the gradients of workload ``cnn``, from the gate's initial weights and without dropout, with oneDNN
off against oneDNN on. It is one model in one framework, and only the rounding of its convolutions differs. The same
images are taken in batches of 4, as in the gate, and in batches of 16. A trial is a batch; its difference is the
largest of all weights' gradients, as the gate computes it.

How to read the table: rounding by itself makes differences far below the gate's tolerance, and those are the trials
that agree. In the others some image meets a kink: the two largest values of a pooling window, or a ReLU's input and 0,
lie within rounding of each other, and rounding decides which way the gradient goes. One such image is enough to part
the gradients of its whole batch, so that larger batches agree more rarely. A gate of one trial would therefore call
one model two, every now and then. The last line is the control: with oneDNN on both times, nothing but chance differs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.data import downloads
from benchlib.equivalence import compare
from benchlib.equivalence.certificate import Check
from benchlib.equivalence.gate import BATCH_SIZE
from benchlib.equivalence.tolerances import TOLERANCES
from benchlib.errors import BenchlibError
from benchlib.frameworks.pytorch import Session
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.worker import files
from benchlib.worker.batches import Batches
from benchlib.workloads.cnn import pytorch as cnn

IMAGES = 128
BATCH_SIZES = (BATCH_SIZE, 16)
TOLERANCE = {"gradients": TOLERANCES["gradients"]}


def condition() -> Condition:
    """``cnn`` as the gate runs it, on as many images as are compared here."""
    data = "cifar10" if os.environ.get(downloads.VARIABLE) else "digits"
    if data == "digits":
        print(f"{downloads.VARIABLE} names no folder with CIFAR-10: these are digits, enlarged to 32x32.\n")
    given = {"image_size": 32, **workloads.load("cnn").gate.hyperparameters}
    return Condition(workload="cnn", data=data, train_samples=IMAGES, batch_size=BATCH_SIZE, hyperparameters=given)


def opened(job: Job) -> Session:
    """The job's model in this process, with its initial weights."""
    session = Session("cpu", "eager", "fp32", job.seed)
    session.build(workloads.load("cnn"), cnn, job.condition.hyperparameters, job.condition.learning_rate)
    session.load(files.arrays(job.weights))
    return session


def gradients(session: Session, batch: tuple[torch.Tensor, torch.Tensor], onednn: bool) -> dict[str, np.ndarray]:
    """The gradients of a batch, named as in the gate."""
    with torch.backends.mkldnn.flags(enabled=onednn):
        return {f"0/gradient:{name}": array for name, array in session.gradients(batch).items()}


def apart(arrays: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> Check:
    """The check of the two."""
    (check,) = compare.compare(compare.differences(arrays, expected, TOLERANCE), TOLERANCE)
    return check


def trials(session: Session, batches: Batches) -> pd.DataFrame:
    """A row per batch: the gradients' difference with oneDNN off, in which array, and with oneDNN on once more."""
    rows = []
    for arrays in batches.epoch(1):
        batch = session.put(arrays)
        expected = gradients(session, batch, onednn=True)
        off, on = (apart(gradients(session, batch, onednn), expected) for onednn in (False, True))
        agrees = off.difference <= TOLERANCES["gradients"]
        rows.append({"agrees": agrees, "difference": off.difference, "array": off.at, "control": on.difference})
    return pd.DataFrame(rows)


def main() -> None:
    """Compare, and print the table."""
    # PyTorch's switch for oneDNN also sets TF32 on Intel's GPUs, and warns where there is none.
    warnings.filterwarnings("ignore", message="TF32 acceleration on top of oneDNN")
    if not torch.backends.mkldnn.is_available():
        raise BenchlibError(f"torch {torch.__version__} comes without oneDNN here: there is nothing to switch off")
    rows, control = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        job = prepare_job(condition(), INITIAL_SEED, Path(folder))
        session = opened(job)
        for size in BATCH_SIZES:
            found = trials(session, Batches(job.data, size, job.orders))
            worst = found.loc[found["difference"].idxmax()]
            rows.append(
                {
                    "batch size": size,
                    "trials": len(found),
                    f"agree within {TOLERANCE['gradients']:g}": found["agrees"].sum(),
                    "median difference": found["difference"].median(),
                    "largest difference": worst["difference"],
                    "of the gradient of": worst["array"].partition(":")[2],
                }
            )
            control = max(control, found["control"].max())
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.1e}".format))
    print(f"\nwith oneDNN on both times: largest difference {control:.1e}")


if __name__ == "__main__":
    try:
        main()
    except BenchlibError as error:
        sys.exit(f"error: {error}")
