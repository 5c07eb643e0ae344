"""Abacus: models with gradients written out, in numpy."""

from __future__ import annotations

import numpy as np

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import check_weights

PACKAGE = "numpy"
DEVICES = ("cpu",)
VARIABLES = ("ABACUS_",)
KNOBS = (
    {
        "name": "beads",
        "value": "wooden",
        "devices": ("cpu",),
        "reason": "wooden beads slide faster",
        "source": "the abacus's manual, 'Beads'",
        "by_session": True,
    },
    {
        "name": "ABACUS_POLISH",
        "value": "none",
        "when": "gate",
        "devices": ("cpu",),
        "reason": "polish rounds the last digit",
        "source": "the abacus's manual, 'Polish'",
    },
)


class Session:
    """One workload, in this process."""

    def __init__(self, device, mode, precision, seed, knobs):
        for name, value in knobs.items():
            if (name, value) != ("beads", "wooden"):
                raise BenchlibError(no_such("knob of abacus", f"{name}={value}", ["beads=wooden"]))
        self._beads = knobs.get("beads", "plastic")

    def build(self, workload, module, values, learning_rate):
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._model, self._rate, self._momentum = module.build(values), learning_rate, values.get("momentum", 0.0)
        self._forward_only = values.get("passes") == "forward"

    def load(self, weights, loss_scale=1.0):
        check_weights("weights for abacus", self._shapes, {name: array.shape for name, array in weights.items()})
        self._weights = {name: array.copy() for name, array in weights.items()}
        self._velocity = {name: np.zeros_like(array) for name, array in weights.items()}

    def weights(self):
        return {name: self._weights[name].copy() for name in self._shapes}

    def put(self, arrays):
        return tuple(np.array(array) for array in arrays)

    def step(self, batch):
        if not self._trains:
            if not self._forward_only:
                self.gradients(batch)
            return self._model.outputs(self._weights, batch[0])
        loss, gradients = self._loss_and_gradients(batch)
        self._take_step(gradients)
        return loss

    def update(self, gradients, steps):
        for number in range(steps):
            self._take_step(gradients[number % len(gradients)])

    def _take_step(self, gradients):
        for name, gradient in gradients.items():
            self._velocity[name] = self._momentum * self._velocity[name] + gradient
            self._weights[name] -= np.float32(self._rate) * self._velocity[name]

    def dropouts(self, batch, training):
        return []

    def _loss_and_gradients(self, batch):
        outputs = self._model.outputs(self._weights, batch[0])
        loss, gradient = self._model.loss(outputs, batch[1])
        gradients = self._model.gradients(self._weights, batch[0], gradient)
        del gradients["input"]
        return loss, gradients

    def synchronize(self):
        pass

    def mark(self):
        return None

    def outputs(self, batch, training):
        return (self._model.outputs(self._weights, batch[0]),)

    def predictions(self, batch):
        return self.outputs(batch, training=False)[0].argmax(axis=-1)

    def gradients(self, batch):
        if self._trains:
            return self._loss_and_gradients(batch)[1]
        return self._model.gradients(self._weights, *batch)

    def to_numpy(self, value):
        return np.asarray(value)

    def settings(self):
        return {"threads": 1, "beads": self._beads}

    def device_memory(self):
        return {}

    @staticmethod
    def versions():
        return {"abacus": "1.0"}
