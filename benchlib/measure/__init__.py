"""The measuring core: workers, comparisons, training runs, statistics. Nothing in here imports a framework."""
