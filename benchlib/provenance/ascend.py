"""Ascend NPUs: whether there is one, and CANN, their toolkit, as its ``set_env.sh`` has set it up. Never run on
Ascend.
"""

from __future__ import annotations

import os
import re
from ctypes.util import find_library
from pathlib import Path


def cann() -> str:
    """The version of CANN; empty where none is set up."""
    folder = os.environ.get("ASCEND_TOOLKIT_HOME", "")
    try:
        text = Path(folder, "version.cfg").read_text(encoding="utf-8")[:4000] if folder else ""
    except (OSError, UnicodeDecodeError):
        return ""
    match = re.search(r"\[([\d.\w]+)(?::|\])", text)
    return match.group(1) if match else ""


def missing() -> str | None:
    """Why workers may use no NPU, and what to do; None where they may."""
    if not list(Path("/dev").glob("davinci[0-9]*")):
        return "no Ascend device (/dev/davinci*); with one, see environments/ascend.txt; else use 'cpu'"
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if any(Path(folder, "libhccl.so").exists() for folder in folders if folder) or find_library("hccl"):
        return None
    return (
        "CANN is not set up: its libhccl.so is not on LD_LIBRARY_PATH: source CANN's set_env.sh, see "
        "environments/ascend.txt; else use 'cpu'"
    )
