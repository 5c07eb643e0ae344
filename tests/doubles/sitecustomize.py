"""Puts the tests' own framework and workload beside benchlib's, in every Python that has this folder on PYTHONPATH."""

from pathlib import Path

try:
    import benchlib.frameworks
    import benchlib.workloads
except (ImportError, SyntaxError):  # a Python without numpy, or 3.6, whose workers get them as a plug-in's
    pass
else:
    here = str(Path(__file__).parent)
    benchlib.frameworks.__path__.append(f"{here}/frameworks")
    benchlib.workloads.__path__.append(f"{here}/workloads")
