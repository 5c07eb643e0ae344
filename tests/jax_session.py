"""What JAX's session leaves at work in eager mode, as JSON: with the interpreter of an environment that has JAX."""

from __future__ import annotations

import importlib
import json

import jax
import numpy as np

from benchlib import workloads
from benchlib.frameworks.jax import Session


def left_at_work() -> dict[str, list[int]]:
    """Of the arrays that a step of an operator returns, by what was asked of the session: how many there were, and how
    many were still computed after the answer.
    """
    session, workload = Session("cpu", "eager", "fp32", 0), workloads.load("linear")
    values = workload.values({"in_features": 1024, "out_features": 1024})
    session.build(workload, importlib.import_module("benchlib.workloads.linear.jax"), values, None)
    random = np.random.default_rng(0)
    shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
    session.load({name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()})
    batch = session.put(workload.inputs(values, 1024, random))
    arrays = []

    def watched(function):
        def inner(*arguments):
            results = function(*arguments)
            arrays.extend(jax.tree.leaves(results))
            return results

        return inner

    session._step, session._gradients = watched(session._step), watched(session._gradients)
    counts = {}
    for name, ask in {
        "outputs": lambda: session.outputs(batch, True),
        "gradients": lambda: session.gradients(batch),
    }.items():
        arrays.clear()
        ask()
        counts[name] = [len(arrays), sum(not array.is_ready() for array in arrays)]
    return counts


if __name__ == "__main__":
    print(json.dumps(left_at_work()))
