"""A notebook's kernel, run as a script: IPython's, with the benchlib that this file belongs to.

Run with ``python -E -P`` (see ``execution.KERNEL``): what lies in the working directory or on a user's ``PYTHONPATH``
(a ``json.py``, another ``benchlib``) then stands in for no module. So benchlib is imported here, from where it lies: it
may not be installed.
"""

from __future__ import annotations

import site
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _import_benchlib() -> None:
    spec = spec_from_file_location("benchlib", Path(__file__).resolve().parents[1] / "__init__.py")
    package = module_from_spec(spec)
    sys.modules["benchlib"] = package
    spec.loader.exec_module(package)


def _add_packages(folder: str) -> None:
    """Have the user's packages in ``folder`` found before the interpreter's, as ``site`` would have it without -E."""
    before = set(sys.path)
    site.addsitedir(folder)
    added = [one for one in sys.path if one not in before]
    others = [one for one in sys.path if one in before]
    first = next((n for n, one in enumerate(others) if one in site.getsitepackages()), len(others))
    sys.path[:] = [*others[:first], *added, *others[first:]]


if __name__ == "__main__":
    users = sys.argv.pop(1)
    if users not in ("none", "usual"):
        _add_packages(users)
    _import_benchlib()
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()
