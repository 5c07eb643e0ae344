"""The workload ``googlenet``, free of any framework."""

from __future__ import annotations

from collections.abc import Iterator

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Work, Workload
from benchlib.workloads.layers import (
    Convolution,
    convolutions_weights,
    convolutions_work,
    dense_weights,
)
from benchlib.workloads.neutral import CAREFUL_RATE, DROPOUT_OFF, LARGE_DECAY, LESS_NORM_BIAS
from benchlib.workloads.settled import (
    DECAY_OF_ALL,
    DROPOUT,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_DECAY,
    JAX_IMAGES,
    JAX_NORM,
    JAX_PADDING,
    JAX_VARIANCE,
    JAX_WEIGHTS,
    LABELS,
    MXNET_DECAY,
    MXNET_LOSS,
    MXNET_NORM,
    MXNET_SGD,
    NORM_MOMENTUM,
    NORM_NAMES,
    PADDING,
    PADDLE_DECAY,
    PADDLE_LOSS,
    PADDLE_NORM,
    PADDLE_WEIGHTS,
    POOLING,
    TENSORFLOW_IMAGES,
    TENSORFLOW_NORM,
    TENSORFLOW_PADDING,
    TENSORFLOW_POOLING,
    TENSORFLOW_SGD,
    TENSORFLOW_WEIGHTS,
    WITHOUT_BIAS,
)

BLOCKS = {  # table 1 of the paper: 1x1; 3x3's reduction, 3x3; 5x5's reduction, 5x5; the projection of the pooling
    "block3a": (64, (96, 128), (16, 32), 32),
    "block3b": (128, (128, 192), (32, 96), 64),
    "block4a": (192, (96, 208), (16, 48), 64),
    "block4b": (160, (112, 224), (24, 64), 64),
    "block4c": (128, (128, 256), (24, 64), 64),
    "block4d": (112, (144, 288), (32, 64), 64),
    "block4e": (256, (160, 320), (32, 128), 128),
    "block5a": (256, (160, 320), (32, 128), 128),
    "block5b": (384, (192, 384), (48, 128), 128),
}
BEFORE = 192  # channels before the first block


def outputs(block: str) -> int:
    """Channels that a block hands on."""
    one, three, five, pooled = BLOCKS[block]
    return one + three[1] + five[1] + pooled


def convolutions(values: Values) -> Iterator[Convolution]:
    """All of them in the order in which they are computed."""
    side = values["image_size"]
    yield Convolution("conv1", 3, 64, 7, 2, side)
    side = _halved(_halved(side))
    yield Convolution("conv2", 64, 64, 1, 1, side)
    yield Convolution("conv3", 64, BEFORE, 3, 1, side)
    side, inputs = _halved(side), BEFORE
    for name, (one, three, five, pooled) in BLOCKS.items():
        if name in ("block4a", "block5a"):
            side = _halved(side)
        yield Convolution(f"{name}.one", inputs, one, 1, 1, side)
        yield Convolution(f"{name}.reduce3", inputs, three[0], 1, 1, side)
        yield Convolution(f"{name}.three", *three, 3, 1, side)
        yield Convolution(f"{name}.reduce5", inputs, five[0], 1, 1, side)
        yield Convolution(f"{name}.five", *five, 5, 1, side)
        yield Convolution(f"{name}.pooled", inputs, pooled, 1, 1, side)
        inputs = outputs(name)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    return {
        **convolutions_weights(convolutions(values), values["norm_bias"]),
        **dense_weights("dense", outputs("block5b"), 10),
    }


def work(values: Values) -> Work:
    """The work of a sample's forward pass."""
    return convolutions_work(convolutions(values), (outputs("block5b"), 10))


def _halved(side: int) -> int:
    return -(-side // 2)


WORKLOAD = Workload(
    name="googlenet",
    title="GoogLeNet",
    kind="training",
    source=(
        "Inception v1 of Szegedy et al., 'Going deeper with convolutions' (CVPR 2015), table 1, with batch "
        "normalisation behind each convolution in place of local response normalisation, and without auxiliary heads"
    ),
    data=("digits", "cifar10"),
    weights=weights,
    work=work,
    hyperparameters={
        "image_size": Hyperparameter(32, "height and width of the images in pixels", choices=(8, 16, 32, 64, 224)),
        "dropout": Hyperparameter(0.4, "dropout probability before the dense layer", minimum=0.0, below=1.0),
        "norm_bias": Hyperparameter(0.0, "initial bias of batch normalisation"),
        "momentum": Hyperparameter(0.9, "momentum of stochastic gradient descent", minimum=0.0, below=1.0),
        "weight_decay": Hyperparameter(5e-4, "L2 penalty of all weights, as a factor of them", minimum=0.0),
    },
    batch_size=128,
    learning_rate=0.01,
    metric="accuracy",
    thresholds={"cifar10": 0.85, "digits": 0.95},
    gate=Gate(
        {"dropout": DROPOUT_OFF, "norm_bias": LESS_NORM_BIAS, "weight_decay": LARGE_DECAY},
        batch_size=16,
        learning_rate=CAREFUL_RATE,
        fed=True,
    ),
    dropouts=lambda values: (("before the dense layer", values["dropout"]),),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **LABELS,
        **PADDING,
        **WITHOUT_BIAS,
        **POOLING,
        **NORM_MOMENTUM,
        **NORM_NAMES,
        **DROPOUT,
        **DECAY_OF_ALL,
        "pooling inside a block": (
            'pad_mode="same" in MindSpore, which with a stride of 1 pads by 1 on every side, as padding=1 does in '
            "PyTorch"
        ),
        **JAX_WEIGHTS,
        **JAX_IMAGES,
        **JAX_PADDING,
        **JAX_NORM,
        **JAX_VARIANCE,
        **JAX_DECAY,
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_IMAGES,
        **TENSORFLOW_PADDING,
        **TENSORFLOW_POOLING,
        **TENSORFLOW_NORM,
        **TENSORFLOW_SGD,
        "TensorFlow: pooling inside a block": (
            'padding="same", which with a stride of 1 is one pixel on each side, as padding=1 is in PyTorch'
        ),
        **MXNET_LOSS,
        **MXNET_SGD,
        **MXNET_DECAY,
        **MXNET_NORM,
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        "PaddlePaddle: loss": (
            "written with logsumexp, because the cross entropy of a sample is cut at 64 on the CPU, which this model's "
            "large logits reach; of 10 classes it takes a tenth of a millisecond more"
        ),
        **PADDLE_DECAY,
        **PADDLE_NORM,
    },
    unit="images",
    optimizer_state=1,
)
