"""The representations of results: numbers in tables, as HTML in a notebook, as lines of text in a script."""

from __future__ import annotations

import functools
import html as html_text
from types import SimpleNamespace
from typing import Any

import pandas as pd

from benchlib import shown, tables
from benchlib.cache import Measurement, final_takes
from benchlib.equivalence.certificate import DIFFERENT, SAME, TRUST, Certificate
from benchlib.errors import require_package
from benchlib.provenance.knobs import Ledger
from benchlib.shown import Shown
from benchlib.stats import frame as tidy
from benchlib.stats import throughput
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns
from benchlib.tables import Column, Table, left_out, number, reached

Parts = list[str | tuple[str, pd.DataFrame]]  # text as it is, and tables with their captions
FIRST = 12  # lines of a text that a terminal shows


def html(result: Shown) -> str:
    """The numbers of ``result`` for a notebook."""
    return "".join(
        f"<pre>{html_text.escape(one)}</pre>" if isinstance(one, str) else tables.html(one[1], one[0]).data
        for one in parts(result)
    )


def text(result: Shown) -> str:
    """The numbers of ``result`` for a terminal or a log."""
    if parts.dispatch(type(result)) is parts.dispatch(object):  # it has none
        return object.__repr__(result)
    lines: list[str] = []
    for one in parts(result):
        short = one if isinstance(one, str) else one[1].drop(columns=["reason", "source"], errors="ignore")  # of knobs
        own = one.splitlines() if isinstance(one, str) else [one[0], *tables.plain(short).splitlines()]
        lines += own[:FIRST] + [f"({len(own) - FIRST} more lines)"] * (len(own) > FIRST)
    return "\n".join(lines)


def figure(result: Shown) -> Any:
    """``result`` drawn. Matplotlib is imported only here: a lab measures without it."""
    require_package("matplotlib", "suite", "plot()")
    from benchlib.plotting import plots

    return plots.draw(result)


shown.RENDERERS.update(html=html, text=text, figure=figure)


@functools.singledispatch
def parts(result: Shown) -> Parts:
    """The tables that ``result`` shows, with their captions."""
    raise NotImplementedError(f"a {type(result).__name__} has no tables")


@parts.register
def _(measured: Measurement) -> Parts:
    compared = measured.kind == "comparison"
    role = f"{measured.role}, repetition {measured.repetition}" if compared else "training run"
    caption = f"{measured.condition}: {role}, seed {measured.seed}, started {measured.started_utc}."
    own: Parts = [] if measured.ok else [f"failed: {measured.failure}"]
    found = throughput.row(measured.condition, [measured] if measured.ok else [], False, not measured.ok, [])
    names = ("disturbed", *("step_ms", "samples_per_second") * compared, "cores_used", "first_step_s", "warm_up_s")
    row = {"blocks": len(final_takes(measured.blocks)), **{name: found[name] for name in (*names, "memory_mib")}}
    own.append((caption, pd.DataFrame([row | {"warm-up": measured.steady}])))
    if measured.epochs:
        names = {"wall_s": "epoch_s", "loss": "final_loss"}
        epochs = pd.DataFrame([epoch.model_dump() for epoch in measured.epochs]).rename(columns=names)
        own.append(("Its epochs.", epochs))
    return own


@parts.register
def _(compared: Comparison) -> Parts:
    ratios, speeds = compared.ratios(), compared.throughput()
    ratios["condition"] = ratios["label"].mask(ratios["role"] == "control", "A/A: the baseline again")
    ratios = ratios.rename(columns={"low": "ratio_low", "high": "ratio_high"})
    why = ["why"] * bool(ratios["why"].any())
    ends = {"low": "samples_per_second_low", "high": "samples_per_second_high", "label": "condition"}
    names = [f"{name}{end}" for name in ("samples_per_second", "step_ms") for end in ("", "_low", "_high")]
    width = f", widest half-width {number(100 * compared.plan.half_width, 2)} %" * (compared.plan.half_width > 0)
    caption = (
        f"Throughput relative to {tables.spelled(str(compared.baseline))}, with 95 % intervals over processes "
        f"({compared.ended or 'not ended yet'}{width}, ± {100 * compared.precision:g} % asked for)."
    )
    own: Parts = [
        (caption, ratios[["condition", "ratio", "ratio_low", "ratio_high", "processes", "verdict", *why]]),
        (
            "The conditions by themselves.",
            speeds.rename(columns=ends)[["condition", *names, "cores_used", "memory_mib", "first_step_s"]],
        ),
    ]
    return [*own, f"failed: {failed}, see failures()"] if (failed := len(compared.failures())) else own


@parts.register
def _(trained: TrainingRuns) -> Parts:
    columns: list[str | Column] = ["label", "final_metric", "lowest", "highest", "epoch_s", "runs", "failed"]
    columns.append(Column("times_left_out", left_out))
    caption = f"Training runs: the metric after {trained.epochs} epochs over seeds, the epoch's mean time"
    if trained.threshold is not None:
        columns += [Column("reached", reached), "seconds_to_threshold"]
        caption += f", and the median time to a metric of {trained.threshold:g}"
    table = Table(f"{caption}.", "final_metric", columns)
    unproved = dict.fromkeys(str(one) for one in trained.certificates.values() if not one.same)
    return [(table.caption, table.of(SimpleNamespace(frame=tidy.of_training(trained, part=0)))), *unproved]


@parts.register
def _(certificate: Certificate) -> Parts:
    of, its = certificate.condition, certificate.reference
    head = f"{of} against {its.but(precision='fp64') if of.precision == 'fp64' else its}: {certificate.verdict}"
    if not certificate.checks:
        return [f"{head}\n{certificate.reason}"]
    rows = [
        {
            "quantity": check.name,
            "largest relative difference": f"{check.difference:.1e}",
            "allowed": f"{check.tolerance:.1e}",
            "verdict": SAME if check.ok else f"{DIFFERENT}: {check.why}",
            "the reference in fp32": f"{check.own:.1e}",
            "where": check.at,
        }
        for check in certificate.checks
    ]
    where = certificate.parts and f" Where they part: {certificate.parts}."
    return [(f"{head}, after {certificate.trials} trials.{where}", pd.DataFrame(rows)), _evidence(certificate)]


def _evidence(certificate: Certificate) -> str:
    """The evidence of a certificate: compared and uncompared cases, work, knobs and versions."""
    met, without = [name for name, one in certificate.exercised.items() if one], certificate.without_masks
    count = certificate.multiply_adds
    largest = certificate.batch_size if certificate.condition.world_size == 1 else "not compared"
    both = certificate.versions, certificate.reference_versions, certificate.knobs, certificate.reference_knobs
    ours, its, set_here, set_there = (", ".join(f"{name} {value}" for name, value in one.items()) for one in both)
    lines = [
        f"Exercised: {'; '.join(met) or 'nothing that the workload declares'}.",
        f"Not exercised, or not in full: {'; '.join(certificate.unexercised) or 'nothing that the workload declares'}.",
        f"A longer training: {f'{certificate.training} steps' if certificate.training else 'not compared'}.",
        f"Largest batch: {largest}{without and f', not compared, because {without}'}.",
        f"Multiply-adds of a step, for a sample: {'not counted' if count is None else f'{count:,.0f}'}.",
        f"Knobs in force: {set_here}; of the reference: {set_there}.",
        f"With {ours}; the reference with {its}; {certificate.commit}, code {certificate.code}.",
    ]
    return "\n".join([*lines, *certificate.remarks, TRUST])


@parts.register
def _(ledger: Ledger) -> Parts:
    caption = "The knobs that were set; all others are as installed."
    if ledger.omissions:
        caption += f" Set in the shell, and left out of the workers' environments: {', '.join(ledger.omissions)}."
    return [(caption, ledger.frame)]
