"""The published claims, and verdicts on them from the tidy frames of notebooks, by one order for all claims.

A claim (``works.yaml``) has a rule, whose test makes cases (:mod:`evidence`): numbers that support it, contradict it or
leave it open. The verdict follows from them, and from the missing ones (:mod:`verdicts`).
"""

from benchlib.literature.verdicts import Judged, judge

__all__ = ["Judged", "judge"]
