"""The toy framework with momentum, which ``load`` does not forget: what the conformance test has to find."""

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    def step(self, batch):
        before = self.weights()
        loss = super().step(batch)
        self.kept = {
            name: 0.9 * getattr(self, "kept", {}).get(name, 0.0) + self.state[name] - array
            for name, array in before.items()
        }
        self.state = {name: before[name] + self.kept[name] for name in before}
        return loss
