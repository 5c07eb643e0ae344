"""Softmax regression on digits, small enough for tests; ``misbehave`` names what its framework does wrong in a step."""

from benchlib.workloads import Hyperparameter, Weight, Workload

WORKLOAD = Workload(
    name="toy",
    title="toy",
    kind="training",
    source="the tests",
    data=("digits",),
    weights=lambda values: {"weight": Weight((192, 10), "glorot_uniform", (192, 10)), "bias": Weight((10,), "zeros")},
    hyperparameters={
        "image_size": Hyperparameter(8, "pixels", choices=(8,)),
        "misbehave": Hyperparameter(
            "",
            "what goes wrong",
            choices=(
                "",
                "die",
                "hang",
                "rubbish",
                "raise",
                "once",
                "later",
                "keyless",
                "odd",
                "negative",
                "nan",
                "clock",
                "spin",
                "slow down",
                "die in a block",
                "nan in a block",
                "hang in a block",
                "rank 1: die in a block",
                "rank 1: raise",
                "rank 1: die",
            ),
        ),
        "flag": Hyperparameter("", "a file that says that it went wrong once"),
        "burn_ms": Hyperparameter(2.0, "CPU milliseconds of a step"),
    },
    batch_size=32,
    learning_rate=0.1,
    metric="accuracy",
    thresholds={"digits": 0.8},
)
