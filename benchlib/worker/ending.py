"""How a worker's process ends that has failed."""

from __future__ import annotations

import os
import traceback
from typing import NoReturn


def end_in_failure() -> NoReturn:
    """Print the error that is being handled and end this process at once, without what is registered for its end: with
    too little memory a thread of OpenBLAS may never end, and an interpreter that ends waits for it, the channel open.
    """
    try:
        traceback.print_exc()
    finally:  # there may be no memory to print with
        os._exit(1)
