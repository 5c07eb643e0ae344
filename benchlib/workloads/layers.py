"""Initial state and work of layers that several workloads have."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchlib.workloads import Weight, Work, taps


@dataclass(frozen=True)
class Convolution:
    """A square convolution without bias, padded by half its kernel, and the batch normalisation behind it."""

    name: str
    inputs: int
    outputs: int
    kernel: int
    stride: int
    side: int  # height and width of its input

    @property
    def side_after(self) -> int:
        """Height and width of its output."""
        return -(-self.side // self.stride)


def convolutions_weights(convolutions: Iterable[Convolution], norm_bias: float) -> dict[str, Weight]:
    """Kernels drawn as He et al. (2015) propose, for the outputs; with a ``norm_bias`` of 0, batch normalisation begins
    as the identity.
    """
    found = {}
    for one in convolutions:
        kernel = (one.outputs, one.inputs, one.kernel, one.kernel)
        deviation = math.sqrt(2 / (one.outputs * one.kernel**2))
        found[f"{one.name}.conv.weight"] = Weight(kernel, "normal", deviation=deviation)
        found[f"{one.name}.norm.weight"] = Weight((one.outputs,), "ones")
        found[f"{one.name}.norm.bias"] = Weight((one.outputs,), "constant", value=norm_bias)
        found[f"{one.name}.norm.running_mean"] = Weight((one.outputs,), "zeros", trained=False)
        found[f"{one.name}.norm.running_var"] = Weight((one.outputs,), "ones", trained=False)
    return found


def dense_weights(name: str, inputs: int, outputs: int) -> dict[str, Weight]:
    """A dense layer with a bias."""
    return {
        f"{name}.weight": Weight((outputs, inputs), "glorot_uniform", (inputs, outputs)),
        f"{name}.bias": Weight((outputs,), "zeros"),
    }


def recurrent_weights(name: str, gates: int, inputs: int, hidden: int) -> dict[str, Weight]:
    """One direction of a layer of an LSTM (4 gates) or a GRU (3), by PyTorch's names; each gate is drawn by itself."""
    return {
        f"{name}.weight_ih_l0": Weight((gates * hidden, inputs), "glorot_uniform", (inputs, hidden)),
        f"{name}.weight_hh_l0": Weight((gates * hidden, hidden), "glorot_uniform", (hidden, hidden)),
        f"{name}.bias_ih_l0": Weight((gates * hidden,), "zeros"),
        f"{name}.bias_hh_l0": Weight((gates * hidden,), "zeros"),
    }


def convolutions_work(convolutions: Iterable[Convolution], dense: tuple[int, int]) -> Work:
    """The work of a sample's forward pass through convolutions and a dense layer (inputs, outputs) at the end. Batch
    normalisation, ReLU and pooling, which are little beside them, are left out.
    """
    multiply_adds, numbers = float(dense[0] * dense[1]), float(sum(dense))
    for one in convolutions:
        along = taps(one.side, one.kernel, one.kernel // 2, one.stride)
        multiply_adds += one.inputs * one.outputs * along**2
        numbers += one.inputs * one.side**2 + one.outputs * one.side_after**2
    return Work(multiply_adds, 4 * numbers)
