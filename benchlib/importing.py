"""Runs in an environment's interpreter, started with this text as ``python -c TEXT DISTRIBUTION``: imports all modules
that a distribution has installed. Prints JSON: its ``version`` (null: it is not there), by module why it could not be
imported (empty: it could), and which of the ``files`` that it says it has installed are ``gone``. Then this process
ends at once: what is imported may have left threads, or print at its end.

Standard library only, of Python 3.8 and later; Python 3.7 needs the package importlib-metadata.
"""

import importlib
import json
import os
import sys

try:
    metadata = importlib.import_module("importlib.metadata")
except ImportError:
    metadata = importlib.import_module("importlib_metadata")


def modules(distribution):
    """The top-level modules that it has installed, less those that are nobody else's business."""
    parts = [path.parts for path in distribution.files or ()]
    packages = {part[0] for part in parts if part[1:] == ("__init__.py",)}
    alone = {part[0].partition(".")[0] for part in parts if len(part) == 1 and part[0].endswith((".py", ".so"))}
    return sorted(name for name in packages | alone if name.isidentifier() and not name.startswith("_"))


def gone(distribution):
    """The files that it has installed and that are not there; what Python writes anew does not count."""
    paths = [path for path in distribution.files or () if path.suffix != ".pyc"]
    return sorted(str(path) for path in paths if not os.path.exists(path.locate()))


def trouble(name):
    """Why a module cannot be imported; empty: it can."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # whatever it is: one that ends the process, too
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    try:
        asked = metadata.distribution(sys.argv[1])
        troubles = {name: trouble(name) for name in modules(asked)}
        answer = {"version": asked.version, "modules": troubles, "gone": gone(asked)}
    except metadata.PackageNotFoundError:
        answer = {"version": None, "modules": {}, "gone": []}
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)
