"""The step of ``versus.py`` for pyperf: ``python pyperf_step.py -o FILE``."""

from collections.abc import Callable

import torch

from benchlib.workloads.cnn.pytorch import Model


def make_step() -> Callable[[], None]:
    """A training step of ``cnn`` at batch 32 on images of 8x8, as installed."""
    torch.manual_seed(0)
    model = Model({"image_size": 8, "conv_dropout": 0.25, "dense_dropout": 0.5})
    images, labels = torch.randn(32, 3, 8, 8), torch.randint(10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    import pyperf

    pyperf.Runner().bench_func("step", make_step())
