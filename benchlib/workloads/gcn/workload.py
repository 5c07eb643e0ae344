"""The workload ``gcn``, free of any framework."""

from __future__ import annotations

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Workload
from benchlib.workloads.neutral import DROPOUT_OFF, LARGE_DECAY, LARGE_EPSILON
from benchlib.workloads.settled import (
    ADAM,
    DROPOUT,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_LEFT_OUT,
    JAX_WEIGHTS,
    LABELS,
    PADDLE_LEFT_OUT,
    PADDLE_LOSS,
    PADDLE_WEIGHTS,
    TENSORFLOW_ADAM,
    TENSORFLOW_LEFT_OUT,
    TENSORFLOW_WEIGHTS,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    found = {}
    sizes = (values["features"], values["hidden"], values["classes"])
    for name, inputs, outputs in zip(("conv1", "conv2"), sizes[:-1], sizes[1:]):
        found[f"{name}.linear.weight"] = Weight((outputs, inputs), "glorot_uniform", (inputs, outputs))
        found[f"{name}.bias"] = Weight((outputs,), "zeros")
    return found


WORKLOAD = Workload(
    name="gcn",
    title="GCN",
    kind="training",
    source=(
        "the two-layer graph convolutional network of Kipf and Welling, 'Semi-supervised classification with graph "
        "convolutional networks' (ICLR 2017), section 3.1 and 5.2"
    ),
    data=("digits_graph", "cora"),
    weights=weights,
    hyperparameters={
        "features": Hyperparameter(64, "numbers that describe a node", minimum=1),
        "classes": Hyperparameter(10, "classes of the nodes", minimum=2),
        "hidden": Hyperparameter(16, "width of the hidden layer", minimum=1),
        "dropout": Hyperparameter(0.5, "dropout probability before each layer", minimum=0.0, below=1.0),
        "weight_decay": Hyperparameter(5e-4, "L2 penalty of the first layer, as a factor of the weights", minimum=0.0),
        "epsilon": Hyperparameter(1e-8, "added to the denominator of Adam", minimum=0.0),
    },
    data_values={"digits_graph": {"features": 64, "classes": 10}, "cora": {"features": 1433, "classes": 7}},
    batch_size=1,
    learning_rate=0.01,
    metric="accuracy",
    thresholds={"cora": 0.70, "digits_graph": 0.85},
    gate=Gate({"dropout": DROPOUT_OFF, "epsilon": LARGE_EPSILON, "weight_decay": LARGE_DECAY}),
    dropouts=lambda values: (
        ("of the features", values["dropout"]),
        ("before the second layer", values["dropout"]),
    ),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **LABELS,
        **DROPOUT,
        **ADAM,
        "weight decay": (
            "part of the loss in both, because AdamW, which stands in for Adam in MindSpore, would take it off the "
            "weights instead of adding it to the gradient"
        ),
        "sum over neighbours": (
            "over a list of edges in both, and not by a sparse matrix: index_add in PyTorch, ops.unsorted_segment_sum "
            "in MindSpore"
        ),
        **JAX_WEIGHTS,
        **JAX_LEFT_OUT,
        "JAX: sum over neighbours": "over the same list of edges, by jax.ops.segment_sum",
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_LEFT_OUT,
        **TENSORFLOW_ADAM,
        "TensorFlow: sum over neighbours": "over the same list of edges, by tf.math.unsorted_segment_sum",
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **PADDLE_LEFT_OUT,
    },
    unit="graphs",
    fields=("features", "edges", "weights", "labels"),
    optimizer_state=2,
    holds=lambda values: 1000 * values["hidden"],  # its graphs have more nodes
)
