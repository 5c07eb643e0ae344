"""The published claims, and verdicts on them from the tidy frames of notebooks.

A claim (``works.yaml``) has a rule: a query of a notebook's frame, a direction, and a test that makes cases of the rows
(:mod:`evidence`). A case, a number with its 95 % interval, supports the claim, contradicts it or leaves it open. Claims
are judged alike (:mod:`verdicts`): *not reproduced* if a case contradicts it; else *no difference shown* if one leaves
it open. Else it is *reproduced* if all that it names was measured and supports it, or *not measured here*.
"""

from benchlib.literature.verdicts import Judged, judge

__all__ = ["Judged", "judge"]
