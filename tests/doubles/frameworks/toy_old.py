"""The toy framework in a version that has no eager mode."""

from benchlib.errors import NotInThisVersion
from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    def __init__(self, device, mode, precision, seed, knobs):
        raise NotInThisVersion(f"mode {mode!r}: not in this version: toy 0.1 has none")
