"""The order in which an epoch goes through the training samples: drawn here, by the parent, and given to workers as a
file. The streams of numpy's generators may differ between versions, and so between the environments of frameworks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchlib.data import Prepared
from benchlib.data.prepare import prepared_folder

EPOCHS = 32  # of a folder: so few that 50,000 samples take 6 MB, and so many that a training run needs few folders


def prepare_orders(samples: int, seed: int, epoch: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the orders of ``EPOCHS`` epochs, ``epoch`` (from 1) among them; made if missing.
    ``batches.Batches`` reads it: ``orders`` int32 (EPOCHS, samples), and ``epochs``, their numbers.
    """
    first = epoch - (epoch - 1) % EPOCHS
    epochs = np.arange(first, first + EPOCHS, dtype=np.int32)

    def draw() -> Prepared:
        orders = [np.random.default_rng([seed, int(number)]).permutation(samples) for number in epochs]
        arrays = {"orders": np.array(orders, dtype=np.int32), "epochs": epochs}
        return arrays, {"seed": seed, "samples": samples, "note": ""}

    return prepared_folder(inputs, f"orders-{samples}samples-seed{seed}-epoch{first}on", None, draw)
