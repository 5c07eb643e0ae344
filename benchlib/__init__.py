"""Fair, traceable comparisons of deep-learning frameworks."""

_PUBLIC = ("Certificate", "Comparison", "Condition", "Interval", "Lab", "TrainingRuns", "workload_from")


def __getattr__(name: str) -> object:
    """A public name, imported when it is first asked for. Workers import this file, too, and have no packages that the
    modules behind these names need.
    """
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from benchlib import public

    return getattr(public, name)


def __dir__() -> list:
    return sorted({*globals(), *_PUBLIC})
