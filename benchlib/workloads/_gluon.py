"""What MXNet has in another way, today or before: see ``settled`` of the workloads that use it."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import mxnet
from mxnet import nd, optimizer
from mxnet.ndarray import NDArray


class Adam(optimizer.Adam):
    """``mx.optimizer.Adam`` that adds epsilon after the bias is corrected, as PyTorch's: MXNet's own corrects the whole
    quotient, epsilon included, by its learning rate.
    """

    def update(self, index: int, weight: NDArray, grad: NDArray, state: tuple[NDArray, NDArray]) -> None:
        self._update_count(index)
        step = self._index_update_count[index]
        correction = math.sqrt(1 - self.beta2**step)
        mean, variance = state
        nd.adam_update(
            weight,
            grad,
            mean,
            variance,
            out=weight,
            lr=self._get_lr(index) * correction / (1 - self.beta1**step),
            wd=self._get_wd(index),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon * correction,
            rescale_grad=self.rescale_grad,
        )


def broadcast_like(F: ModuleType, x: Any, like: Any, dtype: Any) -> Any:
    """``F.broadcast_like``; before 1.8 it wants one ``dtype`` of both, so ``x`` is cast to that of ``like``."""
    return F.broadcast_like(x.astype(dtype) if _ONE_TYPE else x, like)


_ONE_TYPE = mxnet.__version__.split(".")[:2] < ["1", "8"]
