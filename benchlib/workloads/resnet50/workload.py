"""The workload ``resnet50``, free of any framework."""

from __future__ import annotations

from collections.abc import Iterator

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Work, Workload
from benchlib.workloads.layers import (
    Convolution,
    convolutions_weights,
    convolutions_work,
    dense_weights,
)
from benchlib.workloads.neutral import CAREFUL_RATE, LARGE_DECAY, NORM_BIAS
from benchlib.workloads.settled import (
    BEHAVIOUR,
    CHAINER,
    CHAINER_DECAY,
    CHAINER_NORM,
    CHAINER_POOLING,
    CHAINER_SGD,
    DECAY_OF_ALL,
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

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, and width of their 3x3 convolutions
EXPANSION = 4  # a block's outputs over its width


def convolutions(values: Values) -> Iterator[Convolution]:
    """All of them in the order in which they are computed, a block's shortcut last."""
    if values["stem"] == "3x3":
        stem = Convolution("stem", 3, 64, 3, 1, values["image_size"])
        side = stem.side_after
    else:
        stem = Convolution("stem", 3, 64, 7, 2, values["image_size"])
        side = -(-stem.side_after // 2)  # behind it comes a pooling
    yield stem
    inputs = 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            name, stride = f"stage{stage + 1}.{block}", 2 if stage > 0 and block == 0 else 1
            yield Convolution(f"{name}.reduce", inputs, width, 1, 1, side)
            middle = Convolution(f"{name}.conv", width, width, 3, stride, side)
            yield middle
            yield Convolution(f"{name}.expand", width, EXPANSION * width, 1, 1, middle.side_after)
            if block == 0:
                yield Convolution(f"{name}.shortcut", inputs, EXPANSION * width, 1, stride, side)
            inputs, side = EXPANSION * width, middle.side_after


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    return {
        **convolutions_weights(convolutions(values), values["norm_bias"]),
        **dense_weights("dense", EXPANSION * STAGES[-1][1], 10),
    }


def work(values: Values) -> Work:
    """The work of a sample's forward pass."""
    return convolutions_work(convolutions(values), (EXPANSION * STAGES[-1][1], 10))


WORKLOAD = Workload(
    name="resnet50",
    title="ResNet-50",
    kind="training",
    source=(
        "the residual network of He et al., 'Deep residual learning for image recognition' (CVPR 2016), with 50 layers "
        "and the stride of a block in its 3x3 convolution, which is known as v1.5"
    ),
    data=("digits", "cifar10"),
    weights=weights,
    work=work,
    hyperparameters={
        "image_size": Hyperparameter(32, "height and width of the images in pixels", choices=(8, 16, 32, 64, 224)),
        "stem": Hyperparameter(
            "7x7",
            "first convolution: the paper's, of stride 2 and with a pooling, or one for small images",
            ("7x7", "3x3"),
        ),
        "norm_bias": Hyperparameter(0.0, "initial bias of batch normalisation"),
        "momentum": Hyperparameter(0.9, "momentum of stochastic gradient descent", minimum=0.0, below=1.0),
        "weight_decay": Hyperparameter(1e-4, "L2 penalty of all weights, as a factor of them", minimum=0.0),
    },
    batch_size=32,
    learning_rate=0.01,
    metric="accuracy",
    thresholds={"cifar10": 0.85, "digits": 0.95},
    gate=Gate(
        {"norm_bias": NORM_BIAS, "weight_decay": LARGE_DECAY},
        batch_size=16,
        learning_rate=CAREFUL_RATE,
        fed=True,
    ),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **LABELS,
        **PADDING,
        **WITHOUT_BIAS,
        **POOLING,
        **BEHAVIOUR,
        **NORM_MOMENTUM,
        **NORM_NAMES,
        **DECAY_OF_ALL,
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
        **MXNET_LOSS,
        **MXNET_SGD,
        **MXNET_DECAY,
        **MXNET_NORM,
        **CHAINER,
        **CHAINER_SGD,
        **CHAINER_DECAY,
        **CHAINER_POOLING,
        **CHAINER_NORM,
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
