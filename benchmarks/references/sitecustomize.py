"""Puts the libraries' own models beside benchlib's own, in every worker with this folder in BENCHLIB_WORKER_PATH."""

from pathlib import Path

try:
    import benchlib.workloads
except ImportError:  # a Python without numpy has no use for it
    pass
else:
    benchlib.workloads.__path__.append(str(Path(__file__).parent / "workloads"))
