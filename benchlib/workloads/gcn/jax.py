"""The workload ``gcn`` in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values


class Convolution(nnx.Module):
    """Node features (nodes, inputs) to (nodes, outputs): transformed, then summed over each node's neighbours."""

    def __init__(self, inputs: int, outputs: int, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(inputs, outputs, use_bias=False, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros((outputs,)))

    def __call__(self, x: Array, sources: Array, targets: Array, weights: Array) -> Array:
        x = self.linear(x)  # (nodes, outputs)
        messages = x[sources] * weights[:, None]  # (edges, outputs)
        return jax.ops.segment_sum(messages, targets, len(x)) + self.bias[...]  # (nodes, outputs)


class Model(nnx.Module):
    """A graph as a batch of one: features (1, nodes, features), edges (1, edges, 2) and weights (1, edges), to logits
    (1, nodes, classes).
    """

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        self.conv1 = Convolution(values["features"], values["hidden"], rngs)
        self.conv2 = Convolution(values["hidden"], values["classes"], rngs)
        self.dropout1 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.penalty = values["weight_decay"]
        self.dropout2 = nnx.Dropout(values["dropout"], rngs=rngs)

    def __call__(self, features: Array, edges: Array, weights: Array) -> Array:
        sources, targets = edges[0, :, 0], edges[0, :, 1]  # (edges,) each
        x = self.dropout1(features[0])  # (nodes, features)
        x = nnx.relu(self.conv1(x, sources, targets, weights[0]))  # (nodes, hidden)
        x = self.conv2(self.dropout2(x), sources, targets, weights[0])  # (nodes, classes)
        return x[None]  # (1, nodes, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: Model, batch: tuple[Array, ...]) -> Array:
    """Mean cross entropy over the nodes whose label is not -1, and the penalty on the first layer; labels (1, nodes) of
    dtype int32.
    """
    features, edges, weights, labels = batch
    logits = model(features, edges, weights)[0].astype(float)
    entropies = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels[0], 0))
    entropy = entropies.mean(where=labels[0] != -1)
    return entropy + model.penalty / 2 * sum(
        jnp.square(weight[...]).sum() for weight in (model.conv1.linear.kernel, model.conv1.bias)
    )


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Adam."""
    return optax.adam(learning_rate, eps=values["epsilon"])
