"""How long a process is measured while nothing is known of its variances: about as long as it took to start."""

from __future__ import annotations

LEAST_ROUNDS = 4
MOST_ROUNDS = 100


def rounds_for(start_s: float, round_s: float) -> int:
    """Rounds that take about as long as the start of their processes did."""
    return int(min(max(LEAST_ROUNDS, round(start_s / max(round_s, 1e-9))), MOST_ROUNDS))
