"""One step of ``cnn`` in MindSpore's graph mode, compiled as a function, or within a cell (as our session does).

    ONEDNN_MAX_CPU_ISA=AVX2 .venv/bin/python benchmarks/mindspore_cell.py function|cell

A process each, nothing of benchlib but the model's file: images of 8x8, batch 64, ten blocks of 20 steps.
"""

import statistics
import sys
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchlib.workloads.cnn import mindspore as cnn

VALUES = {"image_size": 8, "conv_dropout": 0.25, "dense_dropout": 0.5, "momentum": 0.9}


def main() -> None:
    """Print the milliseconds of a step."""
    ms.set_context(mode=ms.GRAPH_MODE)
    draw = np.random.RandomState(0)
    images = [ms.Tensor(draw.normal(size=(64, 3, 8, 8)).astype(np.float32)) for _ in range(8)]
    labels = [ms.Tensor(draw.randint(0, 10, 64).astype(np.int32)) for _ in range(8)]
    model = cnn.build(VALUES)
    model.set_train()
    optimizer = cnn.optimizer(model, VALUES, 0.005)

    def loss(*batch):
        return cnn.loss(model, batch)

    loss_and_gradients = ms.value_and_grad(loss, None, optimizer.parameters)

    def train(*batch):
        value, gradients = loss_and_gradients(*batch)
        optimizer(gradients)
        return value

    class Step(nn.Cell):
        """The same function within a cell."""

        def __init__(self):
            super().__init__(auto_prefix=False)
            self.model, self.optimizer = model, optimizer

        def construct(self, *batch):
            return train(*batch)

    step = ms.jit(train) if sys.argv[1] == "function" else Step().set_train()
    taken = []
    for _ in range(13):
        started = time.perf_counter()
        for number in range(20):
            value = step(images[number % 8], labels[number % 8])
        value.asnumpy()
        taken.append(1000 * (time.perf_counter() - started) / 20)
    print(f"{sys.argv[1]}: {statistics.median(taken[3:]):.1f} ms, {min(taken[3:]):.1f} to {max(taken[3:]):.1f}")


if __name__ == "__main__":
    main()
