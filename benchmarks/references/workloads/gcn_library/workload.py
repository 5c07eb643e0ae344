"""What the workload ``gcn_library`` is: ``gcn``, built by torch_geometric, with its names of weights."""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Values, Weight
from benchlib.workloads.gcn.workload import WORKLOAD as GCN
from benchlib.workloads.gcn.workload import weights as own


def weights(values: Values) -> dict[str, Weight]:
    """Those of ``gcn``, by torch_geometric's names."""
    return {name.replace("linear", "lin"): weight for name, weight in own(values).items()}


WORKLOAD = replace(GCN, name="gcn_library", title="GCN of torch_geometric", weights=weights)
