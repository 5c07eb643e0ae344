"""The workload ``cnn``, free of any framework."""

from __future__ import annotations

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Work, Workload, taps
from benchlib.workloads.neutral import DROPOUT_OFF
from benchlib.workloads.settled import (
    CAFFE2_CONVOLUTION,
    CAFFE2_DROPOUT,
    CAFFE2_POOLING,
    CAFFE2_SGD,
    CHAINER,
    CHAINER_DROPOUT,
    CHAINER_POOLING,
    CHAINER_SGD,
    CNTK_LOSS,
    CNTK_SGD,
    CNTK_WEIGHTS,
    DROPOUT,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_IMAGES,
    JAX_PADDING,
    JAX_WEIGHTS,
    LABELS,
    MXNET_LOSS,
    MXNET_SGD,
    PADDING,
    PADDLE_LOSS,
    PADDLE_WEIGHTS,
    TENSORFLOW_IMAGES,
    TENSORFLOW_SGD,
    TENSORFLOW_WEIGHTS,
    THEANO_CONVOLUTION,
    THEANO_DROPOUT,
    THEANO_LOSS,
    THEANO_POOLING,
    THEANO_SGD,
    WITH_BIAS,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""

    def conv(name: str, inputs: int, outputs: int) -> dict[str, Weight]:
        kernel = 3
        fan = (inputs * kernel * kernel, outputs * kernel * kernel)
        return {
            f"{name}.weight": Weight((outputs, inputs, kernel, kernel), "glorot_uniform", fan),
            f"{name}.bias": Weight((outputs,), "zeros"),
        }

    def dense(name: str, inputs: int, outputs: int) -> dict[str, Weight]:
        return {
            f"{name}.weight": Weight((outputs, inputs), "glorot_uniform", (inputs, outputs)),
            f"{name}.bias": Weight((outputs,), "zeros"),
        }

    side = values["image_size"] // 4  # two poolings halve it twice
    return {
        **conv("conv1", 3, 50),
        **conv("conv2", 50, 50),
        **conv("conv3", 50, 100),
        **conv("conv4", 100, 100),
        **dense("dense1", 100 * side * side, 512),
        **dense("dense2", 512, 10),
    }


def work(values: Values) -> Work:
    """The work of a sample's forward pass: convolutions and dense layers, whose inputs and outputs have to be moved."""
    size = values["image_size"]
    convolutions = ((3, 50, size), (50, 50, size), (50, 100, size // 2), (100, 100, size // 2))
    dense = ((100 * (size // 4) ** 2, 512), (512, 10))
    multiply_adds = sum(inputs * outputs * taps(side, 3, 1) ** 2 for inputs, outputs, side in convolutions)
    numbers = sum((inputs + outputs) * side**2 for inputs, outputs, side in convolutions)
    multiply_adds += sum(inputs * outputs for inputs, outputs in dense)
    numbers += sum(inputs + outputs for inputs, outputs in dense)
    return Work(float(multiply_adds), 4.0 * numbers)


WORKLOAD = Workload(
    name="cnn",
    title="Rosetta CNN",
    kind="training",
    source=(
        "the CIFAR-10 CNN of Karmanov's Rosetta Stone of deep-learning frameworks "
        "(https://github.com/ilkarman/DeepLearningFrameworks); the thesis of Yin (2020) names no network for its "
        "CIFAR-10 experiments, so this one stands in for it"
    ),
    data=("digits", "cifar10"),
    weights=weights,
    work=work,
    hyperparameters={
        "image_size": Hyperparameter(32, "height and width of the images in pixels", choices=(8, 16, 32)),
        "conv_dropout": Hyperparameter(0.25, "dropout probability after each pooling", minimum=0.0, below=1.0),
        "dense_dropout": Hyperparameter(0.5, "dropout probability between the dense layers", minimum=0.0, below=1.0),
        "momentum": Hyperparameter(0.9, "momentum of stochastic gradient descent", minimum=0.0, below=1.0),
    },
    batch_size=64,
    learning_rate=0.01,
    metric="accuracy",
    thresholds={"cifar10": 0.60, "digits": 0.95},
    gate=Gate({"conv_dropout": DROPOUT_OFF, "dense_dropout": DROPOUT_OFF}),
    dropouts=lambda values: (
        ("after the first pooling", values["conv_dropout"]),
        ("after the second pooling", values["conv_dropout"]),
        ("between the dense layers", values["dense_dropout"]),
    ),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **LABELS,
        **PADDING,
        **WITH_BIAS,
        **DROPOUT,
        **JAX_WEIGHTS,
        **JAX_IMAGES,
        **JAX_PADDING,
        "JAX: first dense layer": (
            "over height, width and channels at once (nnx.LinearGeneral): its kernel is PyTorch's, for which images "
            "are flattened channel by channel, in another order"
        ),
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_IMAGES,
        **TENSORFLOW_SGD,
        "TensorFlow: padding": (
            'padding="same", which with a stride of 1 is one pixel on each side, as padding=1 is in PyTorch'
        ),
        "TensorFlow: dense layer of an image": (
            "its weight has all places channel by channel, as PyTorch flattens an image, and is laid out for channels "
            "that are innermost when it is loaded"
        ),
        **MXNET_LOSS,
        **MXNET_SGD,
        **CHAINER,
        **CHAINER_DROPOUT,
        **CHAINER_SGD,
        **CHAINER_POOLING,
        **CNTK_WEIGHTS,
        **CNTK_LOSS,
        **CNTK_SGD,
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **THEANO_LOSS,
        **THEANO_CONVOLUTION,
        **THEANO_DROPOUT,
        **THEANO_POOLING,
        **THEANO_SGD,
        **CAFFE2_CONVOLUTION,
        **CAFFE2_DROPOUT,
        **CAFFE2_POOLING,
        **CAFFE2_SGD,
    },
    unit="images",
    optimizer_state=1,
)
