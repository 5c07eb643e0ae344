"""Waiting for what comes, on a machine that may be busy."""

import time


def until(holds, seconds: float = 30, every_s: float = 0.1):
    """Wait until a function gives something true, and give that."""
    ends = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < ends, "it did not come to that in time"
        time.sleep(every_s)
    return found
