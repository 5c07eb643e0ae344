"""The first page: who is faster in a few sentences, all ratios in one picture, and the published claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

import pandas as pd
from IPython.display import HTML

from benchlib import frameworks, tables
from benchlib.plotting import figures
from benchlib.report import picture, ratios
from benchlib.report.load import Results, join_distinct
from benchlib.report.reliability import controls, summarise
from benchlib.report.setting import places
from benchlib.tables import spelled

UNDECIDED = "undecided: neither a difference nor sameness is shown in some cases"
IN_PART, NOT_MEASURED = "not measured in full", "not measured here"
SHAPES = {  # of the verdicts on claims, in the order of the page
    **{"reproduced": "reproduced", "not reproduced": "not-reproduced", "no difference shown": "open"},
    **{UNDECIDED: "open", IN_PART: "none", NOT_MEASURED: "none"},
}
NAME = "report_ratios"  # of the table and the figure of all ratios
FEW = 3  # frameworks at most that have a sentence on their largest effects


def show(results: Results) -> HTML:
    """Show the first page; write the table and the figure of all ratios."""
    of_notebooks = ratios.rows(results)
    every = ratios.dedupe(of_notebooks)
    drawn = "<p>No ratio of throughput has been measured yet.</p>"
    if len(every):
        table = of_notebooks[[*ratios.CSV]].rename(columns=ratios.CSV)
        table.to_csv(results.folder / "tables" / f"{NAME}.csv", index=False)
        figures.save(picture.figure(every), results.folder / "figures", NAME)
        paths = [f"tables/{NAME}.csv", f"figures/{NAME}.svg", f"figures/{NAME}.pdf"]
        links = ", ".join(f'<a href="{path}">{path[-3:].upper()}</a>' for path in paths)
        drawn = f'{picture.pictures(every)}<p class="links">This picture as {links}</p>'
    lead, sure, where = (f"<p>{escape(text)}</p>" for text in (effects(every), trust(results, every), origin(results)))
    return HTML(
        f'{picture.definitions(every)}<div class="first-page">'
        f'<section class="sentences lead" aria-label="In a sentence">{lead}</section>'
        f'<section class="ratios" aria-label="All ratios of throughput"><h2>Who is faster</h2>{drawn}</section>'
        f'<aside class="board"><h2>Published claims, and their verdicts here</h2>{"".join(_board(results))}</aside>'
        f'<section class="sentences" aria-label="How sure, on what">{sure}{where}</section></div>'
    )


def effects(every: pd.DataFrame) -> str:
    """Say of each framework how often it is faster or slower than the usual baseline's, and by how much at most."""
    own = ratios.relative_to(every)
    usual = own.loc[own["baseline_subject"] == ratios.usual_baseline(every), "baseline_framework"].head(1)
    own = own[own["baseline_framework"].isin(usual) & ~own["framework"].isin(usual)]
    if not len(own):
        return "No ratio between frameworks has been measured yet."
    text = (_count_effects(of, own["framework"].nunique() <= FEW) for _, of in own.groupby("framework", sort=False))
    return f"Compared with {spelled(usual.iloc[0])}, {' '.join(text)}"


def _count_effects(of: pd.DataFrame, with_most: bool) -> str:
    words = {"same": "as fast", "open": "not shown to differ", "none": "without a ratio"}
    parts: list[str] = []
    for kind, number in sorted(Counter(of["kind"]).items(), key=lambda each: (each[0] in words, -each[1])):
        part = f"{words.get(kind, kind)} in {number}{'' if parts else f' of {len(of)} ratios'}"
        if with_most and kind in ("faster", "slower"):
            own = of[of["kind"] == kind].assign(times=of["estimate"] if kind == "faster" else 1 / of["estimate"])
            most = own.loc[own["times"].idxmax()]
            much = tables.number(most["times"], 2 if most["times"] >= 1.095 else 3)
            part += f" (most on {most['workload']}: {much} times as {'fast' if kind == 'faster' else 'long'})"
        parts.append(part)
    return f"{spelled(of['framework'].iloc[0])} is {', '.join(parts)}."


def trust(results: Results, every: pd.DataFrame) -> str:
    """Give the resolution by identical processes, and the numbers of undecided ratios and of equal models."""
    text = []
    if len(seen := controls(results)):
        facts = summarise(seen.drop_duplicates(["estimate", "low", "high"]))
        half, most = facts["half_width_median"], facts["half_width_largest"]
        text.append("Identical processes were compared with each other, too (A/A). By that, half of the comparisons")
        text.append(f"can show a difference of {half:.0f} %, and the least sure one of {most:.0f} %.")
    comparisons = every.drop_duplicates(ratios.COMPARISON)
    if restless := int(comparisons["restless"].sum()):
        text.append(f"In {restless} of {len(comparisons)} comparisons the A/A excludes 1: trust these least.")
    kinds = Counter(ratios.relative_to(every)["kind"])
    if kinds["open"]:
        text.append(f"{kinds['open']} of {kinds.total()} ratios show neither a difference nor that there is none.")
    if models := [one.same for one in results.certificates]:
        text.append(f"{sum(models)} of {len(models)} models were shown to compute the same as the reference's.")
        if not all(models):
            text.append("The others differ, or could not be checked: they have no ratio.")
    return " ".join(text) or "Nothing is known yet of how sure this is."


def origin(results: Results) -> str:
    """Name the machines and versions, and the results that failed, are missing or stale."""
    packages = {one for name in frameworks.names() for one in frameworks.distributions(name)}
    versions = (f"{name} {text}" for m in results.measured for name, text in m.versions.items() if name in packages)
    days, failed = sorted({m.started_utc[:10] for m in results.measured}), len([*results.each("failed")])
    parts = {
        "Measured on": " | ".join(places(results)),
        "With": join_distinct(versions),
        "When": join_distinct([*days[:1], *days[-1:]], " to "),
        "Processes": f"{len(results.measured):,}" + (f", {failed} failed" if failed else ""),
        "Missing": join_distinct([*results.missing, *(["damaged files"] if results.wrong else [])]),
        "Stale": join_distinct(results.stale),
    }
    return " ".join(f"{name}: {text}." for name, text in parts.items() if text)


def _board(results: Results) -> Iterator[str]:
    """Yield the published claims by verdict."""
    every = [pd.DataFrame(**summary["verdicts"]) for summary in results.summaries.values() if "verdicts" in summary]
    if not every:
        yield "<p>No claim has been judged yet.</p>"
        return
    claims = pd.concat(every)
    claims["then"] = (". Then: " + claims["verdict_then"]).where(claims["verdict_then"] != tables.MISSING, "")
    claims["verdict"] = claims["verdict"].mask(claims["undecided"], UNDECIDED)
    claims["verdict"] = claims["verdict"].mask((claims["verdict"] == NOT_MEASURED) & (claims["here"] != ""), IN_PART)
    for verdict, shape in SHAPES.items():
        rows = claims[claims["verdict"] == verdict]
        if len(rows):
            yield f'<h3 class="{shape}">{picture.glyph(shape)}{len(rows)} {verdict}</h3>'
        if len(rows) and verdict == NOT_MEASURED:
            yield f"<p>{escape(join_distinct(rows['claim']))}</p>"
        elif len(rows):
            here = "Here not " if verdict == IN_PART else "Here: "
            items = "".join(
                f"<li><b>{escape(row.claim)}</b> {escape(row.says)} <small>{escape(row.published_on)}"
                f'<span class="here">. {escape(spelled(here + row.here + row.then))}</span></small></li>'
                for row in rows.itertuples()
            )
            yield f"<ul>{items}</ul>"
