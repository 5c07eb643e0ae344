"""The process that runs a condition: ``__main__.py CHANNEL_FD PARENT_PID``, or of a data-parallel group ``__main__.py
SOCKET FRAMEWORK``, by the framework's launcher, whose environment says which it is. It does not outlive who started it.

It is run as a file: msrun starts nothing else, and Python never takes a script's code from a ``.pyc``.
"""

import ast
import contextlib
import ctypes
import os
import signal
import socket
import sys
import traceback
from importlib.machinery import PathFinder, SourceFileLoader


class Afresh(SourceFileLoader):
    """Compiles the source, whatever ``.pyc`` there is: one may have its time and size, and hold other code."""

    def get_code(self, fullname: str) -> object:
        code = self.get_data(self.path)
        if sys.version_info < (3, 7):  # noqa: UP036 - the floor's rule; 3.6 would evaluate annotations: all are ""
            code = ast.parse(code.replace(b"from __future__ import annotations", b""))
            for node in ast.walk(code):
                vars(node).update({name: ast.Str("") for name in ("annotation", "returns") if vars(node).get(name)})
            code = ast.fix_missing_locations(code)
        return self.source_to_code(code, self.path)


class Finder:
    """Finds the modules that the hash of the code knows: benchlib's, plug-ins' and those in the user's ``folders``."""

    def __init__(self, folders: str) -> None:
        self.folders = tuple(os.path.join(one, "") for one in folders.split(os.pathsep) if one)
        # Imported by a sitecustomize: made anew; folders that it has added to packages stay.
        early = [name for name in sys.modules if name.partition(".")[0] == "benchlib"]
        self.paths = {name: getattr(sys.modules.pop(name), "__path__", None) for name in early}

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        own = name.partition(".")[0] == "benchlib"
        spec = PathFinder.find_spec(name, path, target) if own or self.folders else None
        if spec and type(spec.loader) is SourceFileLoader and (own or spec.origin.startswith(self.folders)):
            spec.loader = Afresh(name, spec.origin)
            spec.submodule_search_locations = self.paths.get(name) or spec.submodule_search_locations
            return spec
        return None


def serve(place: str, name: str) -> None:
    """Serve on the channel that the parent handed down, or connect to a group's; die with who started this."""
    # PR_SET_PDEATHSIG: even a parent that was killed -9 leaves no worker behind
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if place.isdigit() and os.getppid() != int(name):
        raise RuntimeError(
            f"this worker's parent is process {os.getppid()} and not {name}: benchlib has ended meanwhile, or "
            "the interpreter is a script that starts Python without exec"
        )
    from benchlib import frameworks
    from benchlib.worker.channel import Channel, ChannelClosed
    from benchlib.worker.service import Worker

    rank = 0
    if place.isdigit():
        os.set_inheritable(int(place), False)
        channel = Channel(socket.socket(fileno=int(place)))
    elif os.environ.get("MS_ROLE") == "MS_SCHED":  # msrun starts its scheduler from the same script
        frameworks.session_class(name).schedule()  # type: ignore[attr-defined]
        return
    else:
        end = socket.socket(socket.AF_UNIX)
        end.connect(place)
        channel = Channel(end)
        rank = int(os.environ.get("RANK", os.environ.get("RANK_ID", "")))  # torchrun's, or msrun's
        channel.send({"rank": rank, "pid": os.getpid()})
    with contextlib.suppress(ChannelClosed):
        Worker(channel, rank).serve()
    channel.close()
    os._exit(0)  # some frameworks hang or crash in their exit handlers; everything is already with the parent


if __name__ == "__main__":
    try:
        beside = os.path.dirname(os.path.realpath(__file__))  # whose modules would stand in for the standard library's
        sys.path[:] = [one for one in sys.path if os.path.realpath(one) != beside]
        sys.meta_path.insert(0, Finder(os.environ.get("BENCHLIB_WORKER_PATH", "")))
        serve(*sys.argv[1:])
    except BaseException:
        # At once: with too little memory a thread of OpenBLAS may never end, and an interpreter that ends waits for it.
        try:
            traceback.print_exc()
        finally:  # there may be no memory to print with
            os._exit(1)
