"""The toy framework with a difference, which the workload of that name says: the gate has to see each."""

import math

import numpy as np

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    stepping = False

    def load(self, weights, loss_scale=1.0):
        kept = getattr(self, "velocity", None) if self.values["plant"] == "state kept" else None
        super().load(weights, loss_scale)
        self.velocity = kept or self.velocity
        self.taken = 0

    def _of_samples(self, labels):
        share = np.full(len(labels), 1 / len(labels))
        if self.values["plant"] == "the first 16 samples":
            share = np.where(np.arange(len(labels)) < 16, 1 / min(len(labels), 16), 0.0)
        share[labels == 7] *= {"class 7 ignored": 0.0, "class 7 twice": 2.0}.get(self.values["plant"], 1.0)
        return share

    def _settings(self):
        rate, momentum, decay = super()._settings()
        plant = self.values["plant"]
        rate *= 0.1 if plant == "rate after 100 steps" and self.taken >= 100 else 1.0
        rate *= 0.5 + 0.5 * math.cos(math.pi * self.taken / 1000) if plant == "rate of cosine" else 1.0
        return rate, 0.89 if plant == "momentum of 0.89" else momentum, decay * (0.5 if plant == "decay of half" else 1)

    def _descend(self, gradients):
        without = {"no steps with dropout": 0, "three steps with dropout": 3}.get(self.values["plant"], math.inf)
        if self.stepping and self.values["dropout"] and self.taken >= without:
            return
        if self.stepping and self.values["dropout"] and self.values["plant"] == "momentum lost in steps with dropout":
            self.velocity = {name: np.zeros_like(one) for name, one in self.velocity.items()}
        if self.values["plant"] == "bias exempt from decay":
            gradients = {**gradients, "bias": gradients["bias"] - np.float32(self._settings()[2]) * self.state["bias"]}
        super()._descend(gradients)
        if self.values["plant"] == "nesterov":
            rate, momentum, _ = self._settings()
            for name, velocity in self.velocity.items():
                self.state[name] -= np.float32(rate) * (np.float32(momentum) * velocity)
        self.taken += 1

    def step(self, batch):
        self.stepping = True
        loss = super().step(batch)
        self.stepping = False
        return loss

    def _masked(self, inputs, training):
        p, plant = self.values["dropout"], self.values["plant"]
        if plant == "no dropout" or (plant == "no dropout in steps" and self.stepping):
            return inputs
        if plant == "dropout in evaluation":
            training = True
        others = {"another dropout": 0.6 * p, "dropout of 1 - p": (1 - p) * (p > 0), "dropout of 0.25": 0.25 * (p > 0)}
        p = others.get(plant, p)
        if not training or not p:
            return inputs
        if plant == "the same dropped":
            self.random = np.random.default_rng(3)
        if plant == "two masks for ever":
            self.random, self.turn = np.random.default_rng(getattr(self, "turn", 0)), 1 - getattr(self, "turn", 0)
        shape = (len(inputs), 1) if plant == "whole rows dropped" else inputs.shape
        left = inputs * self._kept(shape, p) / (1 if plant == "dropout not scaled" else 1 - p)
        left = left.astype(np.float32)
        larger = np.float32(1.5 if plant == "dropout of other numbers" else 1.0)
        self.dropped.append(("dropout", larger * inputs, larger * left))
        return left

    def outputs(self, batch, training):
        (outputs,) = super().outputs(batch, training)
        if self.values["plant"] == "dropout of the outputs" and training and self.values["dropout"]:
            left = (outputs * (self.random.random(outputs.shape) >= 0.5) * 2).astype(np.float32)
            self.dropped.append(("dropout", outputs, left))
            return (left,)
        if self.values["plant"] == "no mask on the way back" and training:
            self.taken_in = batch[0]
        return (np.clip(outputs, -10, 10) if self.values["plant"] == "outputs cut at 10" else outputs,)

    def _kept(self, shape, p):
        return self.draw(0, shape, p) if self.draw else self.random.random(shape) >= p
