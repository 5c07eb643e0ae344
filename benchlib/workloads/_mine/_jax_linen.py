"""A model of flax.linen as one of flax.nnx, which the session for JAX knows: each layer is a module with its arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import jax
from flax import linen, nnx
from flax.traverse_util import flatten_dict, unflatten_dict
from jax import Array

TRAINS = ("train", "training", "is_training")
"""Arguments of a model that say whether it trains; ``deterministic`` says the contrary."""

KINDS = {"params": nnx.Param, "batch_stats": nnx.BatchStat}
"""Linen's collections of arrays, and nnx's kinds of them."""


class Layer(nnx.Module):
    """A layer with arrays of its own, or a part of the model that has layers."""

    def __call__(self, *inputs: Any, of: linen.Module, **named: Any) -> Any:
        """Compute as ``of`` does. Running variances are those of a sample, as PyTorch's."""
        arrays = {name: one for name, one in vars(self).items() if isinstance(one, nnx.Variable)}
        given = {
            collection: {name: one[...] for name, one in arrays.items() if isinstance(one, kind)}
            for collection, kind in KINDS.items()
        }
        output, updated = of.apply(given, *inputs, mutable=["batch_stats"], **named)
        for name, array in updated.get("batch_stats", {}).items():
            before, size = arrays[name][...], inputs[0].size // array.size
            if name == "var" and not named.get("use_running_average", of.use_running_average):
                array = of.momentum * before + (array - of.momentum * before) * size / (size - 1)
            arrays[name][...] = array
        return output


class Model(nnx.Module):
    """A whole model; it is called with the inputs alone."""

    def __init__(self, model: linen.Module, inputs: Iterable[Array]) -> None:
        self.of, self.deterministic = model, False
        rates: dict[tuple[str, ...], float] = {}

        def note(call: Callable, given: tuple, named: dict[str, Any], context: Any) -> Any:
            if _traces(given) - _traces(inputs):
                within = "is called within a lifted transform (such as nn.RNN, nn.scan or nn.remat), which hides layers"
                raise ValueError(f"{type(context.module).__name__} {within}: write this part with flax.nnx")
            if isinstance(context.module, linen.Dropout):
                rates[context.module.path] = context.module.rate
                return given[0]
            return call(*given, **named)

        with linen.intercept_methods(note):
            variables = model.init(jax.random.key(0), *inputs, **self._behaviour())
        for collection, kind in KINDS.items():
            for (*path, name), array in flatten_dict(variables.get(collection, {})).items():
                setattr(self._layer(path, make=True), name, kind(array))
        for place, ((*path, name), rate) in enumerate(rates.items()):
            setattr(self._layer(path, make=True), name, nnx.Dropout(rate, rngs=nnx.Rngs(place)))

    def __call__(self, *inputs: Array) -> Array:
        def redirect(call: Callable, given: tuple, named: dict[str, Any], context: Any) -> Any:
            layer = self._layer(context.module.path)
            if context.method_name != "__call__" or layer is self or layer is None:
                return call(*given, **named)
            if isinstance(layer, nnx.Dropout):
                return layer(given[0])
            if not _is_whole(layer):
                return call(*given, **named)
            return layer(*given, of=context.module.clone(parent=None, name=None), **named)

        with linen.intercept_methods(redirect):
            return self.of.apply(self._variables(), *inputs, **self._behaviour())

    def _variables(self) -> dict[str, Any]:
        """All arrays as linen has them: some layers look theirs up before they are called."""
        found: dict[str, dict[tuple[Any, ...], Array]] = {name: {} for name in KINDS}
        for path, part in nnx.iter_modules(self):
            for name, one in vars(part).items():
                for collection, kind in KINDS.items():
                    if isinstance(one, kind):
                        found[collection][(*path, name)] = one[...]
        return {collection: unflatten_dict(arrays) for collection, arrays in found.items()}

    def _behaviour(self) -> dict[str, bool]:
        """The model's arguments that say whether it trains."""
        asked = inspect.signature(type(self.of).__call__).parameters
        given = {name: not self.deterministic for name in TRAINS if name in asked}
        return given | ({"deterministic": self.deterministic} if "deterministic" in asked else {})

    def _layer(self, path: Iterable[str], make: bool = False) -> Any:
        """The module at a path of linen's; None where there is none."""
        found: Any = self
        for name in path:
            if make and not hasattr(found, name):
                setattr(found, name, Layer())
            found = getattr(found, name, None)
        return found


def _traces(given: Iterable[Any]) -> set[Any]:
    """The traces that arrays are of: a transform makes one of its own."""
    return {one._trace for one in given if isinstance(one, jax.core.Tracer)}


def _is_whole(part: nnx.Module) -> bool:
    """Is it a layer with all its arrays, and not a part of the model that has layers?"""
    kinds = [type(one) for one in vars(part).values()]
    return any(issubclass(one, nnx.Variable) for one in kinds) and not any(issubclass(one, nnx.Module) for one in kinds)
