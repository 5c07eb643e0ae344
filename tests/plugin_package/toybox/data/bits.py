"""Rows of 7 bits, and whether most of them are ones."""

from __future__ import annotations

import numpy as np

from benchlib.data import DataSet, Kind

TRAIN, TEST = 512, 128


def identity() -> str:
    """What the rows are."""
    return "numpy's generator, seed 3"


def load() -> tuple[np.ndarray, np.ndarray]:
    """The rows, float32 (n, 7), and their labels, int32 (n,)."""
    rows = np.random.default_rng(3).integers(0, 2, (TRAIN + TEST, 7))
    return rows.astype(np.float32), (rows.sum(axis=1) > 3).astype(np.int32)


def _prepared(module, condition):
    rows, labels = module.load()
    samples = condition.train_samples or TRAIN
    arrays = {"train_inputs": rows[:samples], "train_labels": labels[:samples]}
    arrays |= {"test_inputs": rows[TRAIN:], "test_labels": labels[TRAIN:]}
    return arrays, {"source": "the plug-in", "train_samples": samples, "test_samples": TEST}


DATA_SET = DataSet(
    "bits", "bits: 512 rows of 7 bits to train on and 128 to test; drawn, and easy.", TRAIN, Kind(_prepared)
)
