"""The toy framework without what the equivalence gate asks of an optimizer: what the conformance test has to find."""

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    update = property()
