"""Fair, traceable comparisons of deep-learning frameworks."""

_HOMES = {
    "Certificate": "benchlib.equivalence.certificate",
    "Comparison": "benchlib.stats.comparison",
    "Condition": "benchlib.condition",
    "Interval": "benchlib.stats.intervals",
    "Lab": "benchlib.lab",
    "TrainingRuns": "benchlib.stats.training_runs",
}


def __getattr__(name: str) -> object:
    """A public name, imported when it is first asked for: workers import this file as well, and have nothing that the
    modules behind these names need.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    importlib.import_module("benchlib.reprs")  # results show themselves
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list:
    return sorted({*globals(), *_HOMES})
