"""A diff as text and as a page: what has changed first, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import pandas as pd

from benchlib.cluster.diff import MARGIN, RATE, TOGETHER, Change, Diff

RULE = f"by more than {100 * MARGIN:g} %, Benjamini-Hochberg at {100 * RATE:g} %"
STYLE = "<style>body{font:16px/1.5 sans-serif;margin:2rem}th,td{text-align:left;padding:.2rem .8rem}</style>"


def text(diff: Diff) -> str:
    """The diff for a terminal."""
    table = [_table(diff.changed).to_string(index=False)] if diff.changed else []
    lines = [f"{diff.names[0]} -> {diff.names[1]}", *_said(diff), *table]
    lines += ["differs on the two sides:", *(f"  {one}" for one in _differences(diff))]
    lines += [f"{name} only: {len(own)} ratios" for name, own in zip(diff.names, diff.alone, strict=True) if own]
    return "\n".join(lines)


def page(diff: Diff) -> str:
    """The diff as an HTML page that asks the network for nothing."""
    title, rest = f"{diff.names[0]} and {diff.names[1]}", [one for one in diff.changes if not one.changed]
    tables = [_table(of).to_html(index=False, border=0) if of else "<p>No ratio.</p>" for of in (diff.changed, rest)]
    parts = [f"<h1>{escape(title)}</h1>", _list(_said(diff)), "<h2>What has changed</h2>", tables[0]]
    folded = {"Not shown to change": tables[1]}
    folded |= {f"In {name} only": _list(own) for name, own in zip(diff.names, diff.alone, strict=True) if own}
    parts += ["<h2>What differs on the two sides</h2>", _list(_differences(diff))]
    parts += [f"<details><summary>{escape(name)}</summary>{one}</details>" for name, one in folded.items()]
    head = f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{STYLE}</head>'
    return f"<!DOCTYPE html>{head}<body>{''.join(parts)}</body></html>\n"


def _said(diff: Diff) -> list[str]:
    said = [f"{len(diff.changed)} of {len(diff.changes)} ratios have changed ({RULE})."]
    said += [f"Several hosts, not compared: {one}" for one in diff.unclear]
    if few := sum(one.p != one.p for one in diff.changes):
        said.append(f"{few} ratios have too few processes on a side.")
    if diff.together and abs(diff.together - 1) > TOGETHER:
        said.append(f"A step takes {diff.together:.2f} times as long as before in all: the machine, or what all share.")
    return said if diff.changes else [*said, "The two sides have no ratio in common."]


def _table(changes: Iterable[Change]) -> pd.DataFrame:
    named = ["condition", "relative to", "host", "before", "after", "after / before", "verdict"]
    return pd.DataFrame([_cells(one) for one in changes], columns=named)


def _cells(change: Change) -> tuple[str, ...]:
    before, after = change.before, change.after
    host = after.host if before.host == after.host else f"{before.host} -> {after.host}"
    intervals = (str(one) for one in (before.interval, after.interval, change.interval))
    verdict = "not shown to change" if change.p == change.p else "too few processes"
    verdict = f"changed: {' '.join(change.who)}" if change.changed else verdict
    return (str(after.condition), str(after.baseline), host or "not recorded", *intervals, verdict)


def _differences(diff: Diff) -> list[str]:
    """A sentence for each kind that differs; those of the changed ratios are the first."""
    found: dict[str, None] = {}
    for change in sorted(diff.changes, key=lambda one: not one.changed):
        for condition, differs in zip((change.after.condition, change.after.baseline), change.differences, strict=True):
            for kind in dict.fromkeys(kind for kind, _ in differs):
                whose = f" of {condition.implementation}" if kind in ("environment", "knobs") else ""
                own = [(name, two) for (its, name), two in differs.items() if its == kind]
                every = [f"{name}: {two[0]!s:.60} -> {two[1]!s:.60}" for name, two in own]
                found[f"{kind}{whose}: {'; '.join(every[:12] + ['...'] * bool(every[12:]))}"] = None
    return [*found] or ["nothing that is recorded"]


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in items)}</ul>"
