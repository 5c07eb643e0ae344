"""The message channel between the parent and a worker: one JSON document a line. Its socket is its own, which nothing
that frameworks print can reach. Standard library only.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from typing import Any

LONGEST_LINE = 16 * 2**20  # a longer one is rubbish, not a message


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelSilent(Exception):
    """The other side said nothing in the time it had."""


class ChannelGarbage(Exception):
    """The received bytes are not a message."""


class Channel:
    """One end of the channel; both ends are alike."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._rest = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; ChannelClosed if there is no reader."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(
        self, patience_s: float | None = None, tick: Callable[[], None] | None = None, tick_s: float = 0.25
    ) -> dict[str, Any]:
        """The next message. Sleeps until it comes; ``tick`` is called every ``tick_s`` seconds meanwhile."""
        deadline = None if patience_s is None else time.monotonic() + patience_s
        while b"\n" not in self._rest:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ChannelSilent(f"no message within {patience_s:g} s")
            wait = min(t for t in (left, tick_s if tick else None) if t is not None) if (tick or deadline) else None
            if not select.select([self._socket], [], [], wait)[0]:
                if tick:
                    tick()
                continue
            try:
                more = self._socket.recv(65536)
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not more:
                raise ChannelClosed("the other side closed the channel")
            self._rest += more
            if len(self._rest) > LONGEST_LINE:
                raise ChannelGarbage(f"a line of more than {LONGEST_LINE} bytes")
        line, self._rest = self._rest.split(b"\n", 1)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise ChannelGarbage(f"not JSON: {line[:200]!r}") from None
        if not isinstance(message, dict):
            raise ChannelGarbage(f"not a JSON object: {line[:200]!r}")
        return message

    def close(self) -> None:
        self._socket.close()
