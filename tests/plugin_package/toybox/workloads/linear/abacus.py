"""The workload ``linear`` in Abacus."""


class Model:
    """Inputs (batch, in) to outputs (batch, out)."""

    def outputs(self, weights, inputs):
        return inputs @ weights["weight"].T + weights["bias"]

    def gradients(self, weights, inputs, gradient):
        own = {"weight": gradient.T @ inputs, "bias": gradient.sum(axis=0)}
        return {"input": gradient @ weights["weight"], **own}


def build(values):
    """The model with these hyperparameters."""
    return Model()
