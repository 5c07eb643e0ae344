"""A diff as text and as a page: what has changed first, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from benchlib.cluster.diff import MARGIN, RATE, TOGETHER, Change, Diff

HEADINGS = ("condition", "relative to", "host", "before", "after", "after / before", "verdict")
SHOWN = 12  # differing names of a kind
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.2rem .8rem;border-bottom:1px solid #767676}summary{cursor:pointer}"
)


def text(diff: Diff) -> str:
    """The diff for a terminal."""
    lines = [f"{diff.names[0]} -> {diff.names[1]}", _summary(diff), *_warnings(diff)]
    for change in diff.changed:
        lines.append("  " + "  ".join(f"{name} {cell}" for name, cell in zip(HEADINGS, _cells(change), strict=True)))
    lines += ["differs on the two sides:", *(f"  {one}" for one in _differences(diff) or ["nothing that is recorded"])]
    lines += [f"{name} only: {len(own)} ratios" for name, own in zip(diff.names, diff.alone, strict=True) if own]
    return "\n".join(lines)


def page(diff: Diff) -> str:
    """The diff as an HTML page that asks the network for nothing."""
    same = [one for one in diff.changes if not one.changed]
    title = f"{diff.names[0]} and {diff.names[1]}"
    parts = [f"<h1>{escape(title)}</h1><p>{escape(_summary(diff))}</p>", _list(_warnings(diff))]
    parts += ["<h2>What has changed</h2>", _table(diff.changed) if diff.changed else "<p>No ratio.</p>"]
    parts += ["<h2>What differs on the two sides</h2>", _list(_differences(diff) or ["Nothing that is recorded."])]
    parts.append(f"<details><summary>{len(same)} ratios are not shown to change</summary>{_table(same)}</details>")
    for name, own in zip(diff.names, diff.alone, strict=True):
        if own:
            parts.append(f"<details><summary>{len(own)} are in {escape(name)} only</summary>{_list(own)}</details>")
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _summary(diff: Diff) -> str:
    rule = f"by more than {100 * MARGIN:g} %, Benjamini-Hochberg at {100 * RATE:g} %"
    return f"{len(diff.changed)} of {len(diff.changes)} ratios have changed ({rule})."


def _warnings(diff: Diff) -> list[str]:
    said = [f"Several hosts, not compared: {one}" for one in diff.unclear]
    if few := sum(one.p != one.p for one in diff.changes):
        said.append(f"{few} ratios have too few processes on a side.")
    if diff.together and abs(diff.together - 1) > TOGETHER:
        said.append(
            f"On the same hosts a step takes {diff.together:.2f} times as long as before, in the middle of all "
            "conditions: the machine has changed, or something that all have in common."
        )
    if not diff.changes:
        said.append("The two sides have no ratio in common.")
    return said


def _cells(change: Change) -> tuple[str, ...]:
    before, after = change.before, change.after
    host = after.host if before.host == after.host else f"{before.host} -> {after.host}"
    named, word = change.who
    verdict = f"{change.verdict}: {named} {word}" if word else change.verdict
    intervals = (str(one) for one in (before.interval, after.interval, change.interval))
    return (str(after.condition), str(after.baseline), host or "not recorded", *intervals, verdict)


def _differences(diff: Diff) -> list[str]:
    """A sentence for each name that differs; those of the changed ratios are the first."""
    found: dict[str, None] = {}
    for change in sorted(diff.changes, key=lambda one: not one.changed):
        for condition, differs in zip((change.after.condition, change.after.baseline), change.differences, strict=True):
            for kind, names in differs.items():
                whose = f" of {condition.implementation}" if kind in ("environment", "knobs") else ""
                every = [f"{name}: {_short(one)} -> {_short(other)}" for name, (one, other) in names.items()]
                more = [f"and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
                found[f"{kind}{whose}: {'; '.join([*every[:SHOWN], *more])}"] = None
    return [*found]


def _short(value: object) -> str:
    return str(value)[:60]


def _table(changes: Iterable[Change]) -> str:
    return f"<table><thead>{_row('th', HEADINGS)}</thead><tbody>{''.join(_rows(changes))}</tbody></table>"


def _rows(changes: Iterable[Change]) -> Iterator[str]:
    return (_row("td", _cells(change)) for change in changes)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in items)}</ul>"
