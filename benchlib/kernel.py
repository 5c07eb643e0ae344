"""A notebook's kernel, run as a script: IPython's, with the benchlib that this file belongs to.

Run with ``python -E -P``: what lies in the working directory or on a user's ``PYTHONPATH`` (a ``json.py``, another
``benchlib``) then stands in for no module. So benchlib is imported here, from where it lies: it may not be installed.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _import_benchlib() -> None:
    spec = spec_from_file_location("benchlib", Path(__file__).with_name("__init__.py"))
    package = module_from_spec(spec)
    sys.modules["benchlib"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _import_benchlib()
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()
