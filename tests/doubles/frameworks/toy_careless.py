"""The toy framework that takes any weights: what the conformance test has to find."""

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    def load(self, weights, loss_scale=1.0):
        given, self.shapes = self.shapes, {name: weights[name].shape for name in self.shapes}
        super().load({name: weights[name] for name in given})
        self.shapes = given
