"""Batches of prepared data, in an order that is given, and so the same for every framework."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchlib.errors import BenchlibError
from benchlib.worker import files


class Batches:
    """The batches of the prepared data in ``folder``: tuples of the arrays that ``fields`` name, labels last.

    Epochs have the orders that the parent has drawn, in the folder ``orders`` (None: no training batch is asked for).
    The last incomplete batch of an epoch is dropped. Arrays that are handed out are C-contiguous and own their memory.
    Of each training batch ``part`` (i, n) gets the i-th of n equal shares. Images kept small are enlarged here.
    """

    def __init__(
        self,
        folder: Path,
        batch_size: int,
        orders: Path | None,
        fields: tuple[str, ...] = ("inputs", "labels"),
        part: tuple[int, int] = (0, 1),
    ) -> None:
        self._arrays = files.arrays(folder)
        self._repeat = int(self._arrays["repeat"][0]) if "repeat" in self._arrays else 1
        self._fields = fields
        self._folder = folder
        self._orders: dict[int, np.ndarray] = {}
        if orders is not None:
            self.take_orders(orders)
        self.batch_size = batch_size
        self._part, self._parts = part

    @property
    def samples(self) -> int:
        """Number of training samples."""
        return len(self._array("train_labels"))

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in an epoch, at least 1."""
        if self.batch_size > self.samples:
            larger = f"batch_size {self.batch_size} is larger than the {self.samples} training samples"
            raise BenchlibError(f"{larger} in {self._folder}: take a smaller batch")
        return self.samples // self.batch_size

    def batch(self, epoch: int, position: int) -> tuple[np.ndarray, ...]:
        """Batch ``position`` (from 0) of ``epoch``, or our part of it: an array (batch_size, ...) of each field."""
        if not 0 <= position < self.steps_per_epoch:
            raise IndexError(f"batch {position} of epoch {epoch}: there are {self.steps_per_epoch}")
        share = self.batch_size // self._parts
        first = position * self.batch_size + self._part * share
        chosen = self.order(epoch)[first : first + share]
        return self._pick("train", chosen)

    def epoch(self, epoch: int) -> Iterator[tuple[np.ndarray, ...]]:
        """The batches of ``epoch``, in order."""
        for position in range(self.steps_per_epoch):
            yield self.batch(epoch, position)

    def take_orders(self, folder: Path) -> None:
        """Go on with the epochs whose orders are in ``folder``."""
        drawn = files.arrays(folder)
        if drawn["orders"].shape[1] != self.samples:
            count = drawn["orders"].shape[1]
            raise BenchlibError(
                f"{folder} has orders of {count} samples, {self._folder} has {self.samples}: delete both, run again"
            )
        self._orders = dict(zip(drawn["epochs"].tolist(), drawn["orders"]))

    @property
    def epochs(self) -> int:
        """Those whose orders are given."""
        return len(self._orders)

    def order(self, epoch: int) -> np.ndarray:
        """The training samples' indices in the order of ``epoch``, those of the dropped last batch included."""
        if epoch not in self._orders:
            raise BenchlibError(f"the order of epoch {epoch} is not among those given: {sorted(self._orders)}")
        return self._orders[epoch]

    def order_digest(self, epoch: int = 1) -> str:
        """A hash of the order of ``epoch``."""
        return hashlib.sha256(self.order(epoch).astype("<i8").tobytes()).hexdigest()[:16]

    def test(self, batch_size: int) -> Iterator[tuple[tuple[np.ndarray, ...], int]]:
        """The test samples in order, as (batch, number of its real samples). The last batch is filled up by repeating
        its last sample, because graph modes compile for one shape.
        """
        count = len(self._array("test_labels"))
        for start in range(0, count, batch_size):
            chosen = np.minimum(np.arange(start, start + batch_size), count - 1)
            yield self._pick("test", chosen), min(batch_size, count - start)

    def operator_batches(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The batches of an operator: (input, gradient of the output) each, float32."""
        inputs, gradients = self._array("inputs"), self._array("gradients")
        return [(np.array(one), np.array(other)) for one, other in zip(inputs, gradients)]

    def _pick(self, split: str, chosen: np.ndarray) -> tuple[np.ndarray, ...]:
        picked = {field: self._array(f"{split}_{field}")[chosen] for field in self._fields}
        if self._repeat > 1:
            picked["inputs"] = picked["inputs"].repeat(self._repeat, axis=2).repeat(self._repeat, axis=3)
        return tuple(picked.values())

    def _array(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            there = ", ".join(self._arrays)
            raise BenchlibError(f"{self._folder} has no {name}, only {there}: it is of another kind of workload")
        return self._arrays[name]
