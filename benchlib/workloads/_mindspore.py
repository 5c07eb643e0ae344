"""``optim``: ``mindspore.experimental.optim``, and for MindSpore 2.0, which has none, what the workloads use of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

try:
    from mindspore.experimental import optim
except ImportError:  # before 2.1
    optim = None


class AdamW(nn.Optimizer):
    """Adam with decay of the weights themselves, as PyTorch's. ``nn.Adam`` adds epsilon before the bias is corrected:
    its operator gets an epsilon that is corrected, too.
    """

    def __init__(self, params: list[Any], lr: float, eps: float = 1e-8, weight_decay: float = 0.01) -> None:
        super().__init__(lr, params, weight_decay)
        self.beta1, self.beta2, self.eps = (Tensor(number, ms.float32) for number in (0.9, 0.999, eps))
        self.beta1_power = Parameter(Tensor(1.0, ms.float32), "beta1_power")
        self.beta2_power = Parameter(Tensor(1.0, ms.float32), "beta2_power")
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")
        self.adam = ops.Adam()

    @ms.jit
    def construct(self, gradients: tuple[Tensor, ...]) -> bool:
        lr, done = self.get_lr(), True
        self.beta1_power *= self.beta1
        self.beta2_power *= self.beta2
        betas = (self.beta1_power, self.beta2_power, lr, self.beta1, self.beta2)
        eps = self.eps * ops.sqrt(1 - self.beta2_power)
        for place, weight in enumerate(self.parameters):
            if self.exec_weight_decay and self.decay_flags[place]:
                done = ops.depend(done, ops.assign(weight, weight * (1 - lr * self.weight_decay[place])))
            moments = (self.moment1[place], self.moment2[place])
            done = ops.depend(done, self.adam(weight, *moments, *betas, eps, gradients[place]))
        return done


class LinearLR:
    """A learning rate that rises from a share of it, ``start_factor``, to all of it in ``total_iters`` steps."""

    def __init__(self, optimizer: AdamW, start_factor: float, total_iters: int) -> None:
        self.rate, self.start, self.total = optimizer.learning_rate, start_factor, total_iters
        self.highest = float(self.rate.asnumpy())
        self.taken = -1
        self.step()

    def step(self) -> None:
        self.taken += 1
        if self.taken <= self.total:
            share = self.start + (1 - self.start) * self.taken / max(1, self.total)
            ops.assign(self.rate, Tensor(self.highest * share, ms.float32))


if optim is None:
    optim = SimpleNamespace(AdamW=AdamW, lr_scheduler=SimpleNamespace(LinearLR=LinearLR))
