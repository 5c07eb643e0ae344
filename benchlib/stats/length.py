"""How long a process is measured: about as long as it took to start, unless the variances seen say otherwise. In the
pilot, where they are not known yet, a process that took long to start is measured no longer than does some good.
"""

from __future__ import annotations

LEAST_ROUNDS = 4
MOST_ROUNDS = 100

PILOT_ROUNDS = 16
"""Most rounds of a process in the pilot. Rounds of 0.1 s lie some 15 % apart within a process of a quick report, so the
mean of 16 is known to 4 %; more time does more where an interval is wide.
"""


def rounds_for(start_s: float, round_s: float) -> int:
    """Rounds that take about as long as the start of their processes did."""
    return int(min(max(LEAST_ROUNDS, round(start_s / max(round_s, 1e-9))), MOST_ROUNDS))


def pilot_rounds(start_s: float, round_s: float) -> int:
    """Rounds of a process in the pilot."""
    return min(rounds_for(start_s, round_s), PILOT_ROUNDS)
