"""One process of a data-parallel group: ``rank.py SOCKET FRAMEWORK``, started by the framework's launcher, whose
environment says which of them it is. A script, because msrun starts nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys

from benchlib.worker import end_in_failure

try:
    from benchlib import frameworks
    from benchlib.worker.channel import Channel, ChannelClosed
    from benchlib.worker.service import Worker
except BaseException:
    if __name__ == "__main__":
        end_in_failure()
    raise


def main() -> None:
    """Say which process this is, and serve; die with the launcher."""
    path, framework = sys.argv[1:]
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.environ.get("MS_ROLE") == "MS_SCHED":  # msrun starts its scheduler from the same script
        frameworks.session_class(framework).schedule()  # type: ignore[attr-defined]
        return
    try:
        end = socket.socket(socket.AF_UNIX)
        end.connect(path)
        channel = Channel(end)
        rank = int(os.environ.get("RANK", os.environ.get("RANK_ID", "")))  # torchrun's, or msrun's
        channel.send({"rank": rank, "pid": os.getpid()})
        with contextlib.suppress(ChannelClosed):
            Worker(channel, rank).serve()
        channel.close()
    except BaseException:
        end_in_failure()
    os._exit(0)


if __name__ == "__main__":
    main()
