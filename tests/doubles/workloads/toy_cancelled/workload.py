"""Convolutions with their default bias before batch normalisation, which cancels it: its gradient is rounding alone.
``plant`` names what MindSpore does otherwise.
"""

from benchlib.workloads import Hyperparameter, Weight, Workload

CHANNELS = ((3, 16), (16, 32))


def weights(values):
    """Of two convolutions, each with its normalisation, and of a dense layer."""
    found = {}
    for number, (inputs, outputs) in enumerate(CHANNELS, 1):
        found[f"conv{number}.weight"] = Weight((outputs, inputs, 3, 3), "glorot_uniform", (9 * inputs, 9 * outputs))
        found[f"conv{number}.bias"] = Weight((outputs,), "uniform", limit=0.1)
        found[f"bn{number}.weight"] = Weight((outputs,), "ones")
        found[f"bn{number}.bias"] = Weight((outputs,), "zeros")
        found[f"bn{number}.running_mean"] = Weight((outputs,), "zeros", trained=False)
        found[f"bn{number}.running_var"] = Weight((outputs,), "ones", trained=False)
    found["dense.weight"] = Weight((10, 32), "glorot_uniform", (32, 10))
    found["dense.bias"] = Weight((10,), "zeros")
    return found


WORKLOAD = Workload(
    name="toy_cancelled",
    title="cancelled",
    kind="training",
    source="the tests",
    data=("digits",),
    weights=weights,
    hyperparameters={
        "image_size": Hyperparameter(32, "pixels", choices=(8, 16, 32)),
        "plant": Hyperparameter("", "what is other", choices=("", "gradient")),
    },
    batch_size=32,
    learning_rate=0.01,
    metric="accuracy",
)
