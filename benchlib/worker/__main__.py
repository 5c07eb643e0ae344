"""The process that runs a condition: ``python -m benchlib.worker CHANNEL_FD PARENT_PID``. Whatever happens to the
parent, it does not outlive it.
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
    from benchlib.worker.channel import Channel, ChannelClosed
    from benchlib.worker.service import Worker
except BaseException:
    if __name__ == "__main__":
        end_in_failure()
    raise


def main() -> None:
    """Serve on the channel that the parent handed down; die with the parent."""
    try:
        fd, parent = int(sys.argv[1]), int(sys.argv[2])
        # PR_SET_PDEATHSIG: even a parent that was killed -9 leaves no worker behind
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            raise RuntimeError(
                f"this worker's parent is process {os.getppid()} and not {parent}: benchlib has ended meanwhile, or "
                "the interpreter is a script that starts Python without exec"
            )
        os.set_inheritable(fd, False)
        channel = Channel(socket.socket(fileno=fd))
        with contextlib.suppress(ChannelClosed):
            Worker(channel).serve()
        channel.close()
    except BaseException:
        end_in_failure()
    os._exit(0)  # some frameworks hang or crash in their exit handlers; everything is already with the parent


if __name__ == "__main__":
    main()
