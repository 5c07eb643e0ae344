"""The step of ``versus.py`` for pyperf: ``python pyperf_step.py -o FILE``. BENCHLIB_LAYOUT=channels_last lays images
and kernels out as the tuned lane does.
"""

import os
from collections.abc import Callable

import torch

from benchlib.workloads.cnn.pytorch import Model

LAYOUT = "BENCHLIB_LAYOUT"


def make_step() -> Callable[[], None]:
    """A training step of ``cnn`` at batch 32 on images of 8x8."""
    torch.manual_seed(0)
    model = Model({"image_size": 8, "conv_dropout": 0.25, "dense_dropout": 0.5})
    images, labels = torch.randn(32, 3, 8, 8), torch.randint(10, (32,))
    if os.environ.get(LAYOUT) == "channels_last":
        model, images = (one.to(memory_format=torch.channels_last) for one in (model, images))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    import pyperf

    pyperf.Runner().bench_func("step", make_step())
