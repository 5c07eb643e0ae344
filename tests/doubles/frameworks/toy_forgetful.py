"""The queued framework with a ``synchronize`` that does not wait: what the self-test of the timers has to find."""

from benchlib.frameworks import toy_queued

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy_queued.Session):
    def synchronize(self):
        pass
