"""What each result shows of itself: at the end of a notebook's cell its numbers in tables, in a script a few lines."""

from __future__ import annotations

import functools
import html as html_text
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from benchlib import tables
from benchlib.condition import implementation
from benchlib.equivalence.certificate import DIFFERENT, SAME, Certificate
from benchlib.provenance.knobs import Ledger
from benchlib.shown import Shown
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns, median_to_threshold, undisturbed
from benchlib.store import Measurement, counted


@functools.singledispatch
def html(result: Shown) -> str:
    """The numbers of ``result``."""
    raise NotImplementedError(f"nothing is said of how a {type(result).__name__} is shown")


@html.register
def _(measured: Measurement) -> str:
    comparison = measured.kind == "comparison"
    place = f"{measured.role}, repetition {measured.repetition}" if comparison else "training run"
    caption = f"{measured.condition}: {place}, seed {measured.seed}, started {measured.started_utc}."
    parts = [tables.html(pd.DataFrame([_process_row(measured)]), caption).data]
    if measured.epochs:
        names = {"wall_s": "epoch_s", "loss": "final_loss"}
        epochs = pd.DataFrame([epoch.model_dump() for epoch in measured.epochs]).rename(columns=names)
        parts.append(tables.html(epochs, "Its epochs.").data)
    if not measured.ok:
        parts.insert(0, f"<p><b>failed</b></p><pre>{html_text.escape(measured.failure)}</pre>")
    return "".join(parts)


@html.register
def _(compared: Comparison) -> str:
    ratios, throughput = compared.ratios(), compared.throughput()
    who = ratios["label"].mask(ratios["role"] == "control", "A/A: the baseline again")
    ratios = ratios.rename(columns={"low": "ratio_low", "high": "ratio_high"}).assign(condition=who)
    why = ["why"] * bool(ratios["why"].any())
    ratios = ratios[["condition", "ratio", "ratio_low", "ratio_high", "processes", "verdict", *why]]
    ends = {"low": "samples_per_second_low", "high": "samples_per_second_high", "label": "condition"}
    intervals = [f"{name}{end}" for name in ("samples_per_second", "step_ms") for end in ("", "_low", "_high")]
    throughput = throughput.rename(columns=ends)
    throughput = throughput[["condition", *intervals, "cores_used", "memory_mib", "first_step_s"]]
    caption = f"Throughput relative to {compared.baseline}, with 95 % intervals over processes ({_ending(compared)})."
    return tables.html(ratios, caption).data + tables.html(throughput, "The conditions by themselves.").data


@html.register
def _(trained: TrainingRuns) -> str:
    rows = pd.DataFrame([_runs_row(label, runs) for label, runs in trained.runs().groupby("label", sort=False)])
    caption = f"Training runs: the metric after {trained.epochs} epochs over seeds, the epoch's mean time"
    if trained.threshold is None:
        return tables.html(rows.drop(columns=["reached", "seconds_to_threshold"]), f"{caption}.").data
    return tables.html(rows, f"{caption}, and the median time to a metric of {trained.threshold:g}.").data


MOST_FORGIVEN = 5
"""Differences that are shown one by one; all stand in the certificate's file."""


@html.register
def _(certificate: Certificate) -> str:
    who = html_text.escape(f"{certificate.condition} against {certificate.reference}")
    head = f"<p>{who}: <b>{certificate.verdict}</b></p>"
    if not certificate.checks:
        return f"{head}<pre>{html_text.escape(certificate.reason)}</pre>"
    rows = [
        {
            "quantity": check.name,
            "largest relative difference": f"{check.difference:.1e}",
            "allowed": f"{check.tolerance:.1e}",
            "verdict": SAME if check.ok else f"{DIFFERENT}: {check.why}",
            "with what rounding explains": f"{check.worst:.1e}",
            "where": check.at,
        }
        for check in certificate.checks
    ]
    return head + tables.html(pd.DataFrame(rows), f"After {certificate.trials} trials.").data + _evidence(certificate)


def _evidence(certificate: Certificate) -> str:
    """What was among what was compared, and what not; what rounding explained; who was asked."""
    met = [name for name, one in certificate.exercised.items() if one]
    forgiven = [one for check in certificate.checks for one in check.forgiven]
    training = f"{certificate.training} steps" if certificate.training else "not compared"
    lines = [
        f"Exercised: {'; '.join(met) or 'nothing that the workload declares'}.",
        f"Not exercised, or not in full: {'; '.join(certificate.unexercised) or 'nothing that the workload declares'}.",
        f"A longer training: {training}.",
        f"Explained by rounding: {len(forgiven)} differences, of which these are the largest:"
        if forgiven
        else "Explained by rounding: nothing had to be.",
    ]
    largest = sorted(forgiven, key=lambda one: one.difference, reverse=True)[:MOST_FORGIVEN]
    lines += [
        f"{one.at} differs by {one.difference:.1e}, the reference from itself by {one.own:.1e} ({one.by})."
        for one in largest
    ]
    versions = (certificate.versions, certificate.reference_versions)
    ours, its = (", ".join(f"{name} {version}" for name, version in one.items()) for one in versions)
    lines.append(f"With {ours}; the reference with {its}; {certificate.commit}, code {certificate.code}.")
    return tables.bullets(lines).data


@html.register
def _(ledger: Ledger) -> str:
    caption = "The knobs that were set; all others are as installed."
    if ledger.left_out:
        caption += f" Set in the shell, and left out of the workers' environments: {', '.join(ledger.left_out)}."
    return tables.html(ledger.frame, caption).data


@functools.singledispatch
def text(result: Shown) -> str:
    """A few lines on ``result``."""
    return object.__repr__(result)


@text.register
def _(measured: Measurement) -> str:
    row = _process_row(measured)
    rate, step = (tables.number(row[name]) for name in ("samples_per_second", "step_ms"))
    lines = [f"{rate} samples/s, step {step} ms in {row['blocks']} blocks ({row['of them disturbed']} disturbed)"]
    lines += [f"epoch {one.epoch}: metric {tables.number(one.metric)}" for one in measured.epochs[-1:]]
    lines = lines if measured.ok else _first(f"failed: {measured.failure}")
    who = f"{measured.condition}: {measured.role}, repetition {measured.repetition}, seed {measured.seed}:"
    return "\n  ".join([who, *lines])


@text.register
def _(compared: Comparison) -> str:
    rows = compared.ratios()
    names = rows["label"].mask(rows["role"] == "control", "A/A: the baseline again")
    numbers = [tables.ratio(row["ratio"], row["low"], row["high"]) for _, row in rows.iterrows()]
    lines = _aligned(zip(names, numbers, rows["verdict"], strict=True))
    lines += [line for one in compared.certificates.values() if not one.same for line in text(one).splitlines()[:2]]
    if failed := len(compared.failures()):
        lines.append(f"failed: {failed}, see failures()")
    return "\n  ".join([f"Throughput relative to {compared.baseline} ({_ending(compared)}):", *lines])


@text.register
def _(trained: TrainingRuns) -> str:
    rows = [_runs_row(label, runs) for label, runs in trained.runs().groupby("label", sort=False)]
    lines = []
    for row in rows:
        mean, least, most, epoch_s, to_s = (
            tables.number(row[name])
            for name in ("final_metric", "lowest", "highest", "epoch_s", "seconds_to_threshold")
        )
        reached = f", {trained.threshold} reached by {row['reached']} (median {to_s} s)"
        reached *= trained.threshold is not None
        lost = "".join(f", {row[name]} {name}" for name in ("disturbed", "failed") if row[name])
        lines.append(
            (row["condition"], f"{mean} ({least} to {most}), epoch {epoch_s} s, {row['runs']} runs{reached}{lost}")
        )
    return "\n  ".join(
        [f"Training runs, metric after {trained.epochs} epochs (mean, least and most of seeds):", *_aligned(lines)]
    )


@text.register
def _(certificate: Certificate) -> str:
    wrong = [f"{check.name}: {check.why}" for check in certificate.checks if not check.ok]
    found = f"{certificate.condition} against {certificate.reference}: {certificate.verdict}"
    return "\n  ".join([found, *wrong, *_first(certificate.reason)])


@text.register
def _(ledger: Ledger) -> str:
    frame = ledger.frame
    groups = frame.groupby(["framework", "environment", "device", "lane"], sort=False)
    lines = [
        f"{implementation(*who[:2])} {who[2]} {who[3]}: {', '.join(own['name'] + '=' + own['value'])}"
        for who, own in groups
    ]
    left_out = [f"left out of the workers' environments: {', '.join(ledger.left_out)}"] * bool(ledger.left_out)
    return "\n  ".join(["Knobs that were set (reasons and sources are in .frame):", *(lines or ["none"]), *left_out])


def _first(text: str, most: int = 8) -> list[str]:
    """The first lines of a text, and how many more it has."""
    lines = text.splitlines()
    return lines[:most] + [f"({len(lines) - most} more lines)"] * (len(lines) > most)


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The cells of each row in a line, in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _process_row(measured: Measurement) -> dict[str, Any]:
    """What a process gave; nan for what it did not come to, or what was disturbed."""
    blocks, nan = counted(measured.blocks), math.nan
    timed = [block for block in blocks if not block.disturbed]
    wall_s = sum(block.wall_s for block in timed) or nan
    return {
        "blocks": len(blocks),
        "of them disturbed": sum(block.disturbed for block in blocks),
        "step_ms": 1000 * wall_s / (sum(block.steps for block in timed) or nan),
        "samples_per_second": sum(block.samples for block in timed) / wall_s,
        "cores_used": sum(block.cpu_s for block in timed) / wall_s,
        "memory_mib": measured.memory.get("peak", nan),
        "first_step_s": nan
        if measured.first_step_s is None or measured.first_step_disturbed_by
        else measured.first_step_s,
        "warm_up_s": nan if measured.warm_up_s is None or measured.warm_up_disturbed_by else measured.warm_up_s,
        "warm-up": measured.steady,
    }


def _runs_row(label: str, runs: pd.DataFrame) -> dict[str, Any]:
    """The runs of one condition; times are those of the undisturbed."""
    timed = undisturbed(runs)
    return {
        "condition": label,
        "runs": len(runs),
        "final_metric": runs["metric"].mean(),
        "lowest": runs["metric"].min(),
        "highest": runs["metric"].max(),
        "epoch_s": timed["epoch_s"].mean(),
        "reached": int(runs["reached"].sum()),
        "seconds_to_threshold": median_to_threshold(timed, "seconds_to_threshold"),
        "disturbed": len(runs) - len(timed),
        "failed": int(runs["failure"].notna().sum()),
    }


def _ending(compared: Comparison) -> str:
    plan = compared.plan
    width = f", widest half-width {tables.number(100 * plan.half_width, 2)} %" if plan.half_width > 0 else ""
    return f"{compared.ended or 'not ended yet'}{width}"
