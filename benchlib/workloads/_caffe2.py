"""Parts of models in Caffe2 that its own helpers do not have, or not as the workloads want them."""

from __future__ import annotations

from typing import Any

from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, gru_cell
from caffe2.python.core import BlobReference, Net
from caffe2.python.model_helper import ModelHelper
from caffe2.python.modeling import initializers
from caffe2.python.optimizer import Optimizer

seed = 1
"""Of the first dropout's random numbers; a session sets its own."""


def dropout(net: ModelHelper, x: BlobReference, p: float, training: bool) -> BlobReference:
    """``x`` with a share ``p`` of its numbers dropped in training."""
    return drop(net, x, p, training) if p else x


def drop(net: ModelHelper, x: BlobReference, p: float, training: bool) -> BlobReference:
    """Each dropout of a net has random numbers of its own: of one seed all would be the same."""
    place = sum(op.type == "Dropout" for op in net.net.Proto().op)
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CPU, random_seed=seed + place)):
        return brew.dropout(net, x, f"{x}_dropout", ratio=p, is_test=not training)


def norm(net: ModelHelper, x: BlobReference, name: str, channels: int) -> BlobReference:
    """Batch normalisation of images in evaluation behaviour."""
    return brew.spatial_bn(net, x, name, channels, epsilon=1e-5, is_test=True)


def embedding(net: ModelHelper, tokens: BlobReference, name: str, words: int, width: int) -> BlobReference:
    """Whole numbers (length, batch) to vectors (length, batch, width)."""
    fill = initializers.update_initializer(None, None, ("UniformFill", {}))
    weight = net.create_param(f"{name}_w", [words, width], fill)
    places = net.net.FlattenToVec(tokens, f"{name}_places")  # a dense gradient is made of one row of places only
    x = net.net.Gather([weight, places], f"{name}_rows", dense_gradient=True)
    like, _ = net.net.Concat(
        [net.net.Shape(tokens, f"{name}_shape"), whole(net, width)], [f"{name}_shape_of_rows", f"{name}_parts"], axis=0
    )
    return net.net.Reshape([x, like], [name, f"{name}_before"])[0]


def gru(net: ModelHelper, x: BlobReference, name: str, inputs: int, hidden: int) -> BlobReference:
    """(length, batch, inputs) to the state (batch, hidden) after the last step, with cuDNN's biases."""
    batch = net.net.Shape(x, f"{name}_batch", axes=[1])
    shape, _ = net.net.Concat([whole(net, 1), batch, whole(net, hidden)], [f"{name}_shape", f"{name}_sizes"], axis=0)
    start = net.net.ConstantFill([shape], f"{name}_start", input_as_shape=True, value=0.0)
    _, last = gru_cell.GRU(
        net, x, None, [start], inputs, hidden, name, outputs_with_grads=(1,), linear_before_reset=True
    )
    return net.net.Squeeze(last, f"{name}_last", dims=[0])


def cross_entropy(net: ModelHelper, logits: BlobReference, labels: BlobReference) -> BlobReference:
    """The mean over a batch."""
    _, loss = net.net.SoftmaxWithLoss([logits, labels], ["softmax", "loss"])
    return loss


def whole(net: ModelHelper, number: int) -> BlobReference:
    """A whole number that stays, for shapes."""
    return _number(net.param_init_net, number, core.DataType.INT64)


class Adam(Optimizer):
    """Adam, which adds epsilon after the bias is corrected."""

    def __init__(self, learning_rate: float, epsilon: float) -> None:
        super().__init__()
        self.learning_rate, self.epsilon = learning_rate, epsilon

    def _run(self, net: Net, init: Net, info: Any) -> None:
        weight, gradient = info.blob, info.grad
        mean = init.ConstantFill([weight], f"{weight}_first_moment", value=0.0)
        square = init.ConstantFill([weight], f"{weight}_second_moment", value=0.0)
        change = f"{weight}_change"
        rate, epsilon = self._corrected(net, init)
        net.WeightedSum([mean, _number(init, 0.9), gradient, _number(init, 0.1)], [mean])
        net.Sqr(gradient, change)
        net.WeightedSum([square, _number(init, 0.999), change, _number(init, 0.001)], [square])
        net.Sqrt(square, change)
        net.Add([change, epsilon], [change], broadcast=1)
        step = net.Div([mean, change], f"{weight}_step")
        net.WeightedSum([weight, _number(init, 1.0), step, rate], [weight])

    def _corrected(self, net: Net, init: Net) -> tuple[BlobReference, BlobReference]:
        """The rate, below 0, and epsilon of this step; in double precision at first: 1 - 0.999 has few digits."""
        if not net.BlobIsDefined("adam_rate"):
            one, left = _number(init, 1.0, core.DataType.DOUBLE), []
            for name, beta in (("mean", 0.9), ("square", 0.999)):
                power = init.ConstantFill([], f"adam_{name}", shape=[1], value=1.0, dtype=core.DataType.DOUBLE)
                net.Mul([power, _number(init, beta, core.DataType.DOUBLE)], [power])
                rest = net.Sub([one, power], f"adam_{name}_rest")
                left.append(net.Cast(rest, f"adam_{name}_left", to=core.DataType.FLOAT))
            root = net.Sqrt(left[1], "adam_root")
            net.Div([net.Mul([root, _number(init, -self.learning_rate)], "adam_up"), left[0]], "adam_rate")
            net.Mul([root, _number(init, self.epsilon)], "adam_epsilon")
        return BlobReference("adam_rate"), BlobReference("adam_epsilon")


def _number(init: Net, value: float, kind: int = core.DataType.FLOAT) -> BlobReference:
    name = f"number_{kind}_{value}"
    if not init.BlobIsDefined(name):
        init.ConstantFill([], name, shape=[1], value=value, dtype=kind)
    return BlobReference(name)
