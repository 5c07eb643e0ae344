"""How much of a difference between two frameworks is rounding? PyTorch in fp32 against itself in fp64, one batch.

    .venv/bin/python benchmarks/conditioning.py

Outputs and gradients of the convolutional workloads in training behaviour, from their initial state, with handwritten
digits of 32x32 pixels. The difference is relative to an array's largest value, as in the equivalence gate. Batch
normalisation over few numbers, and ReLU, make it grow with depth; ``norm bias`` is what the normalisation's biases are
set to, to keep clear of that. A gradient's difference of 1e-3 and more is a kink: rounding decides whether ReLU passes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pandas as pd
import sklearn.datasets
import torch

from benchlib import workloads
from benchlib.data.weights import draw
from benchlib.equivalence.tolerances import NEGLIGIBLE

CASES = (("cnn", {}), ("resnet50", {}), ("resnet50", {"stem": "3x3"}), ("googlenet", {"dropout": 0.0}))
SEEDS = range(2)


def main() -> None:
    """Print the table: a row for each model and batch, the differences as lowest and highest over the seeds."""
    rows = []
    for name, given in CASES:
        for bias in (0.0, 2.0) if "norm_bias" in workloads.load(name).hyperparameters else (None,):
            for batch_size in (4, 16):
                found = np.array([_differences(name, given, bias, batch_size, seed) for seed in SEEDS]).T
                columns = {
                    what: f"{of.min():.0e} to {of.max():.0e}"
                    for what, of in zip(("outputs", "gradients"), found, strict=True)
                }
                rows.append(
                    {"model": f"{name} {given.get('stem', '')}", "norm bias": bias, "batch": batch_size, **columns}
                )
    print(pd.DataFrame(rows).to_string(index=False))


def _differences(name: str, given: dict, bias: float | None, batch_size: int, seed: int) -> tuple[float, float]:
    workload = workloads.load(name)
    off = {"conv_dropout": 0.0, "dense_dropout": 0.0} if name == "cnn" else {"norm_bias": bias}
    values = workload.values({**given, **off, "image_size": 32})
    state = {key: torch.tensor(array) for key, array in draw(workload, values, seed).items()}
    images = sklearn.datasets.load_digits().images[seed * batch_size :][:batch_size]
    images = np.kron((images - images.mean()) / images.std(), np.ones((4, 4)))
    images = torch.tensor(np.repeat(images[:, None], 3, axis=1))
    labels = torch.arange(batch_size) % 10
    computed = [
        list(_computed(name, values, state, images.to(kind), labels)) for kind in (torch.float32, torch.float64)
    ]
    (outputs, *gradients), (known, *known_gradients) = computed
    floor = NEGLIGIBLE * max(one.abs().max().item() for one in known_gradients)
    return _relative(outputs, known), max(map(_relative, gradients, known_gradients, [floor] * len(gradients)))


def _computed(
    name: str, values: dict, state: dict, images: torch.Tensor, labels: torch.Tensor
) -> Iterator[torch.Tensor]:
    module = importlib.import_module(f"benchlib.workloads.{name}.pytorch")
    model = module.build(values).to(images.dtype)
    model.load_state_dict(state, strict=False)
    yield model(images).detach()
    module.loss(model, (images, labels)).backward()
    yield from (parameter.grad for parameter in model.parameters())


def _relative(found: torch.Tensor, known: torch.Tensor, floor: float = 0.0) -> float:
    return (found.double() - known).abs().max().item() / max(known.abs().max().item(), floor)


if __name__ == "__main__":
    main()
