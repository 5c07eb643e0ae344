"""Does the equivalence gate see it when a model, an optimizer or a session is not what it should be?

    .venv/bin/python benchmarks/mutations.py [--only WORDS] [--modes eager graph] [--sample N] [--to FOLDER] [--again]
    .venv/bin/python benchmarks/mutations.py --unmodified 10 [--first 1] [--only WORDS] [--modes eager]
        [--precisions bf16 fp16] [--to FOLDER]

Plants the differences that ``benchmarks/mutants`` declares, one at a time, into a file of a workload or of a
framework's session, and certifies as a user would, in the sizes of ``parameters/quick/equivalence.yaml`` and the lane
``tuned``. Each is an environment of its own, with the packages of its framework's (``planting.ENVIRONMENTS``) and a
benchlib in which that one file differs, so the reference stays what it is, and a difference in PyTorch's file is seen,
too. Frameworks that are not there are named and left out. Beside them, a model whose helper module is changed has to
get a new certificate.

``FOLDER`` (``outputs/benchmarks/mutations``) gets ``mutations.csv``, a row for each, as soon as it is known, and
``mutations.md``, what was caught and what passed. ``times allowed`` is the largest difference over its tolerance. Other
work with equal numbers is caught if the certificate remarks on it, too. The exit code is 1 if a region (see
``planting.REGIONS``) has less caught than ``ASKED``, something was called different that changes nothing, or a worker
failed that should not.

``--unmodified N`` asks the other way round: all workloads as they are, from N other seeds of weights and batches, from
``--first`` on, have to be called the same, in fp32 or in the ``--precisions`` that are asked for, as far as a framework
has them. ``--only`` takes those whose name has all of the words: kind, workload, framework, mode, what is planted, or a
region, as ``--only "region far"``. ``--again`` keeps the rows of ``mutations.csv`` in which all was as it should be,
and makes the others, once more or for the first time. With ``--training-steps``, what is the same is trained for so
many steps, too, as in the profile ``release``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import planting
from planting import Trial

from benchlib import Lab, environments, frameworks, workloads
from benchlib.condition import Condition
from benchlib.equivalence import gate, parting, samples
from benchlib.equivalence.certificate import DIFFERENT, NOT_CHECKED, SAME, Certificate
from benchlib.parameter_types import read
from benchlib.provenance import fingerprint
from benchlib.runner import availability, machine_lock, recording

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "outputs" / "benchmarks" / "mutations"
SIZES = ROOT / "parameters" / "quick" / "equivalence.yaml"
MODES = ("eager", "graph")
TOGETHER = 24
"""Differences that are certified together, with one reference. All that are known are on disk after that."""

ASKED = {"ordinary": 0.97, "work": 0.8}
"""Share that has to be caught in a region, of what changes something; 0.95 in the others."""

PATIENCE_S = 2400.0
"""A graph of JAX's googlenet in double precision takes more than ten minutes to compile."""


def main() -> None:
    """Plant and certify, and say what was caught."""
    parser = argparse.ArgumentParser(description="Mutation testing of the equivalence gate.")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of them at random, of all kinds in turn")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--unmodified", type=int, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--precisions", nargs="+", choices=frameworks.every_precision(), default=("fp32",))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--training-steps", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    machine_lock.LOCK = arguments.to / "turn.lock"  # nothing is timed: nobody has to wait for it
    if arguments.unmodified:
        chosen = _as_they_are(arguments.modes, arguments.precisions, arguments.only)
        frame = pd.DataFrame(_unmodified(chosen, arguments.first, arguments.unmodified, arguments.to))
        sys.exit(bool((frame.verdict != SAME).any()))
    absent = planting.absent()
    for framework, why in absent.items():
        print(f"left out: {framework}: {why}")
    chosen = [
        one
        for one in planting.trials()
        if one.framework not in absent
        and one.mode in arguments.modes
        and _named(f"{one.mutant.kind} {one}", arguments.only)
    ]
    chosen = _sample(chosen, arguments.sample) if arguments.sample else chosen
    table = arguments.to / "mutations.csv"
    kept = _good_rows(table) if arguments.again else []
    missing = [one for one in chosen if _name(one) not in {_name(row) for row in kept}]
    rows = outcomes(missing, arguments.to, table, kept, arguments.training_steps)
    if not (arguments.only or arguments.sample):
        rows += _helpers(arguments.to)
    frame = pd.DataFrame(rows)
    frame.to_csv(table, index=False)
    (arguments.to / "mutations.md").write_text(summary(frame), encoding="utf-8")
    print(summary(frame))
    sys.exit(not is_good(frame))


def _sample(trials: list[Trial], number: int) -> list[Trial]:
    """A number of trials at random, but no graphs of deep models, which take minutes each."""
    chance, kinds = random.Random(7), defaultdict(list)
    for one in trials:
        if one.mode != "graph" or one.workload not in {"resnet50", "googlenet"}:
            kinds[one.mutant.kind].append(one)
    for some in kinds.values():
        chance.shuffle(some)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*map(reversed, kinds.values())))
    return list(itertools.islice(filter(None, turns), number))


def outcomes(
    chosen: list[Trial],
    folder: Path,
    table: Path | None = None,
    kept: Sequence[dict[str, Any]] = (),
    training_steps: int = 0,
) -> list[dict[str, Any]]:
    """A row for each trial, certified in ``folder``, behind those ``kept``; what is known is written to ``table``
    meanwhile.
    """
    rows = list(kept)
    needed = {planting.ENVIRONMENTS[one.framework] for one in chosen}
    pythons = {name: environments.find(name).python for name in needed}
    with _elsewhere(folder / "environments"), _of_another_benchlib():
        beds: dict[str, planting.Bed] = {}
        for together in _batches(chosen):
            conditions = []
            for number, trial in enumerate(together):
                environment = planting.ENVIRONMENTS[trial.framework]
                name = f"planted-{environment}-{number}"
                if name not in beds:
                    beds[name] = planting.Bed(folder / "environments" / name, name, pythons[environment])
                beds[name].plant(trial.mutant.place(trial.framework), planting.planted(trial.mutant, trial.framework))
                conditions.append(_condition(trial, name))
            started = time.monotonic()
            certificates = _certified(conditions, folder, training_steps)
            seconds = (time.monotonic() - started) / len(together)
            rows += [
                _row(trial, certificates[condition.key], seconds, training_steps)
                for trial, condition in zip(together, conditions, strict=True)
            ]
            for row in rows[-len(together) :]:
                _print(row)
            if table:
                pd.DataFrame(rows).to_csv(table, index=False)
    return rows


def is_good(frame: pd.DataFrame) -> bool:
    """Is enough caught, and nothing else wrong?"""
    counted = frame[frame.changes != "nothing"]
    shares = _is_caught(counted).groupby(counted.region).mean()
    return all(share >= ASKED.get(region, 0.95) for region, share in shares.items()) and _wrong(frame).empty


def summary(frame: pd.DataFrame) -> str:
    """In Markdown: what was caught in each region and of each kind, in each framework, and all that passed."""
    counted = frame[frame.changes != "nothing"]
    caught, passed = counted[_is_caught(counted)], counted[~_is_caught(counted)]
    columns = [one for one in planting.FRAMEWORKS if one in set(counted.framework)]
    lines = [
        f"{len(counted)} differences planted that change something, {len(caught)} caught "
        f"({100 * len(caught) / max(1, len(counted)):.1f} %), {len(passed)} passed; {len(frame) - len(counted)} that "
        f"change nothing.",
        "",
        f"| region | planted | change something | caught | share | {' | '.join(columns)} |",
        f"|---|---|---|---|---|{'---|' * len(columns)}",
        *(_of_region(region, frame[frame.region == region], columns) for region in planting.REGIONS),
        "",
        f"| kind | planted | caught | least, median of times allowed | passed | {' | '.join(columns)} |",
        f"|---|---|---|---|---|{'---|' * len(columns)}",
    ]
    for kind, rows in counted.groupby("kind"):
        seen = rows[rows.verdict == DIFFERENT]["times_allowed"]
        lines.append(
            f"| {kind} | {len(rows)} | {_is_caught(rows).sum()} | "
            f"{f'{seen.min():.2g}, {seen.median():.2g}' if len(seen) else '-'} | {(~_is_caught(rows)).sum()} | "
            f"{' | '.join(_caught_of(rows[rows.framework == framework]) for framework in columns)} |"
        )
    lines += ["", "| passed | in | nearest check | times allowed | why |", "|---|---|---|---|---|"]
    lines += [f"{_line(row)} {row.unseen} |" for row in passed.itertuples()]
    wrong = _wrong(frame)
    lines += ["", "Called different, or failed, and should not:" if len(wrong) else "Nothing else was wrong.", ""]
    lines += [f"{_line(row)} {row.verdict}: {row.reason} |" for row in wrong.itertuples()]
    return "\n".join(lines) + "\n"


def _wrong(frame: pd.DataFrame) -> pd.DataFrame:
    """What was called different though it changes nothing, or failed though it should not."""
    false_alarm = (frame.changes == "nothing") & (frame.verdict != SAME)
    return frame[false_alarm | ((frame.verdict == NOT_CHECKED) & ~frame.refused)]


def _is_caught(rows: pd.DataFrame) -> pd.Series:
    """Was it seen: by the verdict, or, of other work, by a remark?"""
    return (rows.verdict != SAME) | ((rows.region == "work") & (rows.remarks != ""))


def _of_region(region: str, rows: pd.DataFrame, columns: Sequence[str]) -> str:
    counted = rows[rows.changes != "nothing"]
    share = f"{100 * _is_caught(counted).mean():.1f} %" if len(counted) else "-"
    each = " | ".join(_caught_of(counted[counted.framework == framework]) for framework in columns)
    return f"| {region} | {len(rows)} | {len(counted)} | {_is_caught(counted).sum()} | {share} | {each} |"


def _caught_of(rows: pd.DataFrame) -> str:
    return f"{_is_caught(rows).sum()} of {len(rows)}" if len(rows) else "-"


def _line(row: Any) -> str:
    where = f"{row.workload} {row.framework} {row.mode}"
    return f"| {row.what} | {where} | {row.seen_by} {row.at} | {row.times_allowed:.2g} |"


def _batches(chosen: list[Trial]) -> Iterator[list[Trial]]:
    """Those of one workload and mode together, no more than ``TOGETHER``; what takes long last."""
    by_kind: dict[tuple[str, str], list[Trial]] = {}
    for trial in chosen:
        by_kind.setdefault((trial.mode, trial.workload), []).append(trial)
    for kind in sorted(by_kind, key=lambda kind: (kind[0], _size(kind[1]))):
        together = by_kind[kind]
        for start in range(0, len(together), TOGETHER):
            yield together[start : start + TOGETHER]


def _size(workload: str) -> int:
    """Numbers of its weights."""
    weights = workloads.load(workload).weights(_sized(workload).hyperparameters)
    return sum(math.prod(weight.shape) for weight in weights.values())


def _name(one: Trial | dict[str, Any]) -> tuple[str, ...]:
    """What tells a trial, or its row, from others."""
    if isinstance(one, Trial):
        return one.workload, one.framework, one.setting, one.mutant.what
    return tuple(one[name] for name in ("workload", "framework", "mode", "what"))


def _good_rows(table: Path) -> list[dict[str, Any]]:
    """Of a table that is there, the rows of what is still declared and was caught, or rightly not."""
    if not table.exists():
        return []
    frame = pd.read_csv(table, keep_default_na=False).assign(
        times_allowed=lambda read: pd.to_numeric(read.times_allowed, errors="coerce")
    )
    missed = (frame.changes != "nothing") & ~_is_caught(frame)
    declared = {_name(one) for one in planting.trials()}
    rows = frame.drop([*frame[missed].index, *_wrong(frame).index]).to_dict("records")
    return [row for row in rows if _name(row) in declared]


def _condition(trial: Trial, environment: str) -> Condition:
    sized = _sized(trial.workload)
    hyperparameters = {**sized.hyperparameters, **trial.mutant.hyperparameters}
    told = {"framework": trial.framework, "mode": trial.mode, "environment": environment, "precision": trial.precision}
    if trial.mutant.processes > 1:
        told |= {"world_size": trial.mutant.processes, "threads": 1}
    return sized.but(hyperparameters=hyperparameters, **told)


def _sized(workload: str) -> Condition:
    """The workload as it is certified in quick, in PyTorch."""
    (model,) = (one for one in read(SIZES)["models"] if one["workload"] == workload)
    return Condition(**model, lane="tuned")


def _certified(conditions: list[Condition], folder: Path, training_steps: int = 0) -> dict[str, Certificate]:
    """Made anew; what a lab keeps beside certificates stays."""
    shutil.rmtree(folder / "certificates", ignore_errors=True)
    parting.with_parting = lambda certificate, *_: certificate  # two processes for each, which are not needed here
    return Lab(outputs=folder, patience_s=PATIENCE_S).certify(conditions, training_steps)


def _row(trial: Trial, certificate: Certificate, seconds: float, training_steps: int) -> dict[str, Any]:
    mutant = trial.mutant
    return {
        "workload": trial.workload,
        "framework": trial.framework,
        "mode": trial.setting,
        "region": mutant.region,
        "kind": mutant.kind,
        "what": mutant.what,
        "changes": mutant.changes,
        **_of(certificate),
        "seconds": round(seconds, 1),
        "refused": trial.framework in mutant.refused,
        "unseen": mutant.unseen,
        "training_steps": training_steps,
        "commit": fingerprint.commit(),
    }


def _of(certificate: Certificate) -> dict[str, Any]:
    """Verdict, the check that is farthest beyond its tolerance or nearest to it, and by how much."""
    times, check = max(
        ((_times_allowed(check.difference, check.tolerance), check) for check in certificate.checks),
        key=lambda pair: (not pair[1].ok, pair[0]),
        default=(math.nan, None),
    )
    return {
        "verdict": certificate.verdict,
        "seen_by": check.name if check else "",
        "at": check.at if check else "",
        "times_allowed": times,
        "reason": certificate.reason.splitlines()[0] if certificate.reason else "",
        "remarks": "; ".join(getattr(certificate, "remarks", ())),
    }


def _times_allowed(difference: float, tolerance: float) -> float:
    if not difference:
        return 0.0
    return difference / tolerance if tolerance else math.inf


def _print(row: dict[str, Any]) -> None:
    print(
        f"{row['verdict']:11s} {row['workload']} {row['framework']} {row['mode']} [{row['kind']}] {row['what']}: "
        f"{row['seen_by']} {row['at']} {row['times_allowed']:.3g} times allowed, {row['seconds']} s {row['reason']}",
        flush=True,
    )


def _named(name: str, words: Iterable[str]) -> bool:
    return all(word in name for word in words)


@contextmanager
def _of_another_benchlib() -> Iterator[None]:
    """What is planted lies in another benchlib than the one whose code is hashed, which the gate refuses else."""
    before, recording.require_hashed = recording.require_hashed, lambda worker, known: None
    try:
        yield
    finally:
        recording.require_hashed = before


@contextmanager
def _elsewhere(folder: Path) -> Iterator[None]:
    """Environments are registered in an empty ``folder``, not among the user's, until this ends."""
    shutil.rmtree(folder, ignore_errors=True)
    environments_root = environments.root
    environments.root = lambda: folder
    (folder / ".environments").mkdir(parents=True)
    try:
        yield
    finally:
        environments.root = environments_root
        shutil.rmtree(folder, ignore_errors=True)


def _as_they_are(modes: Sequence[str], precisions: Sequence[str], words: list[str]) -> list[Condition]:
    """Each workload in each framework that is there, in whatever environment, in the modes and precisions it has."""
    chosen = [
        one.but(framework=framework, environment=environment, mode=mode, precision=precision)
        for one in (_sized(model["workload"]) for model in read(SIZES)["models"])
        for framework, environment in _there(one.workload)
        for mode in modes
        for precision in precisions
        if mode in frameworks.modes(framework)
        and precision in frameworks.precisions(framework)
        and _named(f"{one.workload} {framework} {mode} {precision}", words)
    ]
    if not chosen:
        sys.exit(f"--only {' '.join(words)}: no workload, framework, mode and precision has all of these words")
    return chosen


def _unmodified(chosen: list[Condition], first: int, number: int, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each condition, from other seeds of weights and batches than the gate's."""
    rows: list[dict[str, Any]] = []
    for seed in range(first, first + number):
        gate.INITIAL_SEED = samples.INITIAL_SEED = seed
        certificates = _certified(chosen, folder)
        for one in chosen:
            named = {name: getattr(one, name) for name in ("workload", "framework", "mode", "precision")}
            rows.append({"seed": seed, **named, **_of(certificates[one.key])})
            yield rows[-1]
            print(*rows[-1].values(), flush=True)
        pd.DataFrame(rows).to_csv(folder / "unmodified.csv", index=False)


def _there(workload: str) -> Iterator[tuple[str, str]]:
    """The frameworks that have the workload and are there, each with the first environment that has it."""
    for framework in workloads.load(workload).frameworks():
        offering = (one for one in environments.names() if availability.why_absent(framework, "cpu", one) is None)
        if (environment := next(offering, None)) is not None:
            yield framework, environment


HELPED = {
    "from .helper import OPTIONS": "as its neighbour",
    "from benchlib.workloads.helped.helper import OPTIONS": "by its whole name",
    "from benchlib.workloads.helped import helper\n\nOPTIONS = helper.OPTIONS": "as a module",
}
"""How a model's file imports a module that helps it."""


def _helpers(folder: Path) -> Iterator[dict[str, Any]]:
    """Nesterov's momentum, in a module that the model's file imports: certified before and after it is put there."""
    for statement, how in HELPED.items():
        plugins = folder / "helped"
        shutil.rmtree(plugins, ignore_errors=True)
        shutil.rmtree(folder / "certificates", ignore_errors=True)
        place = plugins / "workloads" / "helped"
        shutil.copytree(ROOT / "benchlib" / "workloads" / "cnn", place, ignore=shutil.ignore_patterns("__pycache__"))
        _replace(place / "workload.py", 'name="cnn"', 'name="helped"')
        last_import = "from benchlib.workloads import Values\n"
        _replace(place / "mindspore.py", last_import, f"{last_import}{statement}\n")
        _replace(place / "mindspore.py", 'momentum=values["momentum"])', 'momentum=values["momentum"], **OPTIONS)')
        for options, what in (({}, "nothing"), ({"nesterov": True}, "Nesterov's momentum")):
            (place / "helper.py").write_text(f"OPTIONS = {options}\n", encoding="utf-8")
            started = time.monotonic()
            command = [sys.executable, __file__, "--helped", str(plugins), str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            verdict, reason = (done.stdout.strip().splitlines() or [NOT_CHECKED])[-1], done.stderr[-300:]
            row = {
                "workload": "cnn",
                "framework": "mindspore",
                "mode": "eager",
                "region": "ordinary",
                "kind": "helper module",
                "what": f"{what} in a helper module, imported {how}",
                "changes": "trained" if options else "nothing",
                "verdict": verdict if done.returncode == 0 else NOT_CHECKED,
                "seen_by": "",
                "at": "",
                "times_allowed": math.nan,
                "reason": "" if done.returncode == 0 else reason,
                "remarks": "",
                "seconds": round(time.monotonic() - started, 1),
                "refused": False,
                "unseen": "",
                "training_steps": 0,
                "commit": fingerprint.commit(),
            }
            _print(row)
            yield row


def _helped(plugins: str, folder: str) -> None:
    """In a process of its own, which has not read the files before: print the verdict on the helped workload."""
    lab = Lab(outputs=folder, plugins=[plugins])
    condition = Condition(workload="helped", framework="mindspore", lane="tuned", hyperparameters={"image_size": 8})
    print(lab.certify([condition])[condition.key].verdict)


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{path}: what is replaced is there {text.count(old)} times: {old}")
    path.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--helped"]:
        _helped(*sys.argv[2:])
    else:
        main()
