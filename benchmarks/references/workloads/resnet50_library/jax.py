"""The workload ``resnet50_library`` in JAX: a ResNet in flax.linen, in the style of flax's example for ImageNet
(examples/imagenet/models.py in its repository; flax's package has no models): partial applications of convolution and
normalisation that are handed down to compact blocks.

It pads by numbers of pixels, as PyTorch does: the example's "SAME" begins one pixel later where the stride is 2. Loss
and optimizer are those of ``resnet50``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from flax import linen, nnx
from flax.traverse_util import flatten_dict, unflatten_dict
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads.resnet50.jax import Convolution, loss, optimizer
from benchlib.workloads.resnet50.jax import Model as Weights
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES

__all__ = ["build", "loss", "optimizer"]

Place = tuple[str, ...]


class Bottleneck(linen.Module):
    """(batch, side, side, inputs) to (batch, side / strides, side / strides, 4 * width)."""

    width: int
    conv: Callable[..., linen.Module]
    norm: Callable[..., linen.Module]
    strides: int = 1

    @linen.compact
    def __call__(self, x: Array) -> Array:
        y = self.conv(self.width, (1, 1), name="reduce_conv")(x)
        y = linen.relu(self.norm(name="reduce_norm")(y))
        y = self.conv(self.width, (3, 3), self.strides, padding=1, name="conv_conv")(y)
        y = linen.relu(self.norm(name="conv_norm")(y))
        y = self.conv(EXPANSION * self.width, (1, 1), name="expand_conv")(y)
        y = self.norm(name="expand_norm")(y)
        if x.shape != y.shape:
            x = self.conv(EXPANSION * self.width, (1, 1), self.strides, name="shortcut_conv")(x)
            x = self.norm(name="shortcut_norm")(x)
        return linen.relu(x + y)


class ResNet(linen.Module):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    momentum: float

    @linen.compact
    def __call__(self, x: Array, train: bool) -> Array:
        conv = partial(linen.Conv, use_bias=False)
        norm = partial(linen.BatchNorm, use_running_average=not train, momentum=self.momentum, epsilon=1e-5)
        x = conv(64, (7, 7), 2, padding=3, name="stem_conv")(x)
        x = linen.relu(norm(name="stem_norm")(x))
        x = linen.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for stage, (blocks, width) in enumerate(STAGES):
            for block in range(blocks):
                strides = 2 if stage and not block else 1
                x = Bottleneck(width, conv, norm, strides, name=f"stage{stage + 1}_{block}")(x)
        return linen.Dense(10, name="dense")(x.mean((1, 2)))


class Model(Weights):
    """``resnet50``'s weights, by its names, and linen's model to compute with them: the session for JAX knows modules
    of nnx. What goes to and fro are names, and nothing is left of them once a step is compiled.
    """

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        super().__init__(values, rngs)
        self.momentum = values["norm_momentum"]

    def __call__(self, x: Array) -> Array:  # (batch, size, size, 3)
        train = not self.stem.norm.use_running_average
        logits, updated = ResNet(self.momentum).apply(self._variables(), x, train, mutable=["batch_stats"])
        statistics = flatten_dict(updated["batch_stats"])
        for conv, module in self._convolutions():
            norm = _norm_of(conv)
            module.norm.mean[...], module.norm.var[...] = statistics[*norm, "mean"], statistics[*norm, "var"]
        return logits

    def _variables(self) -> dict[str, dict]:
        """Of all modules, as linen has them."""
        params = {("dense", "kernel"): self.dense.kernel[...], ("dense", "bias"): self.dense.bias[...]}
        statistics = {}
        for conv, module in self._convolutions():
            norm = _norm_of(conv)
            params[*conv, "kernel"] = module.conv.kernel[...]
            params[*norm, "scale"], params[*norm, "bias"] = module.norm.scale[...], module.norm.bias[...]
            statistics[*norm, "mean"], statistics[*norm, "var"] = module.norm.mean[...], module.norm.var[...]
        return {"params": unflatten_dict(params), "batch_stats": unflatten_dict(statistics)}

    def _convolutions(self) -> Iterator[tuple[Place, Convolution]]:
        """Each convolution with its normalisation, and where linen's model has the convolution."""
        for path, module in nnx.iter_modules(self):
            if isinstance(module, Convolution):
                *block, name = map(str, path)
                within = ("_".join(block),) if block else ()
                yield (*within, f"{name}_conv"), module


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def _norm_of(conv: Place) -> Place:
    """The normalisation behind a convolution."""
    return (*conv[:-1], conv[-1].replace("_conv", "_norm"))
