"""The toy framework with another model under the same name: the gate has to find it."""

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    SCALE = 1.01
