"""The order in which an epoch goes through the training samples: drawn here, by the parent, and given to workers as a
file. The streams of numpy's generators may differ between versions, and so between the environments of frameworks.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from benchlib.worker import files

EPOCHS = 32
"""Of a folder: few enough that 50,000 samples take 6 MB, and many enough that a training run needs few folders."""


def prepare_orders(samples: int, seed: int, epoch: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the orders of ``EPOCHS`` epochs, ``epoch`` (from 1) among them, for
    ``batches.Batches``: ``orders`` int32 (EPOCHS, samples) and ``epochs``, their numbers; made if it is not there.

    Epoch n of seed s has the order ``np.random.default_rng([s, n]).permutation(samples)``.
    """
    first = epoch - (epoch - 1) % EPOCHS
    depends = f"{Path(__file__).read_text(encoding='utf-8')}{np.__version__}"
    name = f"orders-{samples}samples-seed{seed}-epoch{first}on-{hashlib.sha256(depends.encode()).hexdigest()[:12]}"
    folder = Path(inputs) / name
    if not folder.exists():
        epochs = np.arange(first, first + EPOCHS)
        orders = np.empty((EPOCHS, samples), dtype=np.int32)
        for order, number in zip(orders, epochs, strict=True):
            order[:] = np.random.default_rng([seed, int(number)]).permutation(samples)
        about = {"seed": seed, "samples": samples, "note": ""}
        files.write(folder, {"orders": orders, "epochs": epochs.astype(np.int32)}, about)
    files.check(folder)
    return folder
