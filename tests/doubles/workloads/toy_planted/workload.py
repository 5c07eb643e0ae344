"""The toy's softmax regression with dropout of its inputs, momentum and decay; ``plant`` names what the framework
``toy_planted`` does otherwise, and the framework ``toy`` does not.
"""

import numpy as np

from benchlib.workloads import Exercise, Gate, Hyperparameter, Weight, Workload

PLANTS = (
    "",
    "class 7 ignored",
    "class 7 twice",
    "state kept",
    "rate after 100 steps",
    "rate of cosine",
    "decay of half",
    "bias exempt from decay",
    "momentum of 0.89",
    "nesterov",
    "dropout in evaluation",
    "dropout of the outputs",
    "another dropout",
    "dropout of 1 - p",
    "dropout of 0.25",
    "no dropout",
    "no dropout in steps",
    "dropout of other numbers",
    "no steps with dropout",
    "three steps with dropout",
    "momentum lost in steps with dropout",
    "dropout not scaled",
    "the same dropped",
    "whole rows dropped",
    "the first 16 samples",
    "outputs cut at 10",
    "no mask on the way back",
    "two masks for ever",
)

WORKLOAD = Workload(
    name="toy_planted",
    title="planted",
    kind="training",
    source="the tests",
    data=("digits",),
    weights=lambda values: {"weight": Weight((192, 10), "glorot_uniform", (192, 10)), "bias": Weight((10,), "zeros")},
    hyperparameters={
        "image_size": Hyperparameter(8, "pixels", choices=(8,)),
        "misbehave": Hyperparameter("", "nothing here", choices=("",)),
        "burn_ms": Hyperparameter(0.0, "CPU milliseconds of a step"),
        "plant": Hyperparameter("", "what is other", choices=PLANTS),
        "dropout": Hyperparameter(0.25, "dropout probability of the inputs", minimum=0.0, below=1.0),
        "momentum": Hyperparameter(0.9, "of gradient descent", minimum=0.0, below=1.0),
        "decay": Hyperparameter(0.01, "of all weights", minimum=0.0),
    },
    batch_size=32,
    learning_rate=0.01,
    metric="accuracy",
    gate=Gate({"dropout": (0.0, "masks never agree")}),
    exercises={
        "a rare image": Exercise(lambda samples: abs(samples["inputs"][:, 0, 0, 7] - 0.18652) < 1e-4),  # there is one
        "an image of nothing": Exercise(lambda samples: (samples["inputs"] == 99).all(axis=(1, 2, 3))),
        "a white image": Exercise(
            lambda samples: (samples["inputs"] == 5).all(axis=(1, 2, 3)),
            lambda samples: {**samples, "inputs": np.full_like(samples["inputs"], 5)},
        ),
    },
    dropouts=lambda values: (("of the inputs", values["dropout"]),),
)
