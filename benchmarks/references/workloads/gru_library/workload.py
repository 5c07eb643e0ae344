"""What the workload ``gru_library`` is: ``gru`` with the layer of flax.nnx, whose gates have one bias each."""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Values, Weight
from benchlib.workloads.gru.workload import WORKLOAD as GRU
from benchlib.workloads.gru.workload import weights as own

NAMES = {
    "gru.weight_ih_l0": "gru.cell.dense_i.weight",
    "gru.bias_ih_l0": "gru.cell.dense_i.bias",
    "gru.weight_hh_l0": "gru.cell.dense_h.weight",
}
"""flax's for those of ``gru``."""


def weights(values: Values) -> dict[str, Weight]:
    """Those of ``gru``, by flax's names, without the biases of the state."""
    found = {name: weight for name, weight in own(values).items() if name != "gru.bias_hh_l0"}
    return {NAMES.get(name, name): weight for name, weight in found.items()}


WORKLOAD = replace(GRU, name="gru_library", title="GRU of flax.nnx", weights=weights)
