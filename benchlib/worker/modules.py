"""Which code a worker has run: the files of what it has imported, for whoever hashes them."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Sequence


def imported(package: str, beside: Sequence[str]) -> dict[str, str]:
    """The files of all modules that this process has imported, by their names, that are not Python's own, those of
    ``package`` or others in site-packages, made by this process in its working directory, or in the folders ``beside``;
    benchlib's own are among them. Empty: a module without a file.
    """
    libraries = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")]
    elsewhere = tuple(os.path.join(folder, "") for folder in (*libraries, os.getcwd(), *beside))
    files = {}
    for name, module in list(sys.modules.items()):
        top, file = name.partition(".")[0], getattr(module, "__file__", None) or ""
        packaged = {"site-packages", "dist-packages"} & set(Path(file).parts)
        main = module is sys.modules["__main__"]  # which multiprocessing knows by another name, too
        others = packaged or main or top == package or file.startswith(elsewhere)
        if top == "benchlib" or (file and not others):
            files[name] = file
    return dict(sorted(files.items()))
