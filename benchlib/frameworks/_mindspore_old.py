"""What MindSpore 2.0 does in another way than today's, for ``frameworks/mindspore.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mindspore import Tensor, nn, ops


class Variances:
    """The running variances of a model, which MindSpore 2.0 makes of variances of the batch, PyTorch and MindSpore
    today of those of a sample (a sum over one number less). They are turned into PyTorch's, exactly, when they are
    asked for, and not in steps.
    """

    def __init__(self, norms: Sequence[nn.BatchNorm2d], numbers: Callable[[Any], list[int]]) -> None:
        """``numbers`` gives the number of values of a channel in a batch that each of ``norms`` is given."""
        self._norms, self._numbers = norms, numbers
        self._batch: tuple[Tensor, ...] = ()
        self.keep()

    def keep(self) -> None:
        """Take them for PyTorch's, as they are now."""
        self._counted = 0
        self._kept = [norm.moving_variance.asnumpy().astype(float) for norm in self._norms]

    def count(self, batch: tuple[Tensor, ...]) -> None:
        """Remember that they take this batch in."""
        if self._counted and batch[0].shape != self._batch[0].shape:
            self.correct()
        self._counted, self._batch = self._counted + 1, batch

    def correct(self) -> None:
        """Turn each into the one that PyTorch would have.

        MindSpore makes r m^k + s of a variance r, k batches of n numbers for each channel, and momentum m. Here s is
        the sum of the batches' variances with their weights. PyTorch makes r m^k + s n / (n - 1).
        """
        counted, self._counted = self._counted, 0
        if not counted:
            return
        kept = [values * (1 - norm.momentum) ** counted for norm, values in zip(self._norms, self._kept)]
        for norm, old, number in zip(self._norms, kept, self._numbers(self._batch)):
            own = norm.moving_variance.asnumpy().astype(float)
            ops.assign(norm.moving_variance, Tensor((old + (own - old) * number / (number - 1)).astype(np.float32)))
        self.keep()
