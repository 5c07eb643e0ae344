"""Does anything that is done to a run lose, change or double a measurement, or leave something behind?

    .venv/bin/python benchmarks/faults.py [--minutes 30] [--seed 0] [--to FOLDER] [--only WORDS]

Small runs (a comparison, training runs, the gate, a data-parallel group, ``benchlib run``) with the tests' framework,
with PyTorch and with MindSpore, in folders that are thrown away; each is killed, interrupted, starved of disk or memory
or otherwise disturbed at a random moment (``fault_trials.py`` has them all), and then run once more without. All trials
take turns, in random order, until the minutes are over. After each is asked (``fault_judge.py``):

- Is all that was kept as it was, and nothing measured twice?
- Is no process left, and no file that the next start does not take away?
- Does the next run go on, and end with the measurements that a run without a fault makes, under the same keys?
- Are the exit codes those of ``benchlib run --help``? Does a user see a message, and no traceback?

The table of what happened goes to FOLDER as ``faults.md`` and ``faults.csv`` (without it: a new folder among the
temporary ones), with what was printed in each trial that broke something. The exit code is 1 if one did. Some trials
need root to be what they are (a disk of their own, a limit of memory); else a stand-in is made, and the table says so.
What is measured here counts for nothing, and takes no turn with other measurements: let none that counts run beside it.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import fault_judge
import fault_places
import fault_subject
import fault_trials
from fault_trials import Run, Trial

TEMPLATE_LIMIT_S = 600.0


@dataclass(frozen=True)
class Outcome:
    """A row of the table."""

    number: int
    trial: str
    run: str
    what: str
    exit_code: int | None
    seconds: float
    wrong: str  # "; " between what does not hold; empty: all holds


class Bench:
    """Makes trials in a folder, and keeps of each kind of run one without a fault, until it is closed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self._templates: dict[str, fault_places.Template] = {}
        self._places = ExitStack()

    def close(self) -> None:
        """End what still runs, and remove all."""
        self._places.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def outcome(self, number: int, trial: Trial, reports: Path | None = None) -> Outcome:
        """Make a trial; what was printed goes to ``reports`` if something does not hold."""
        try:
            template = self._template(fault_subject.SUITE if trial.kind == fault_places.PDF else trial.kind)
        except RuntimeError as error:
            return Outcome(number, trial.name, trial.kind, "not tried", None, 0.0, str(error))
        place = fault_places.Place(self.folder / f"{number}", trial.kind, self.folder / "home")
        started = time.monotonic()
        chance = random.Random(f"{self.seed} {number} {trial}")
        run = Run(place, template, chance, fault_judge.Kept(place.outputs))
        try:
            wrong, code = self._judged(run, trial)
            if wrong and reports:
                printed = [path.read_text(encoding="utf-8", errors="replace") for path in _logs(place)]
                text = "\n==== the next run\n".join(printed)
                (reports / f"{number}.txt").write_text("\n".join([str(trial), *run.deeds, *wrong, text]), "utf-8")
        finally:
            run.undo.close()
            fault_judge.end_processes(place.folder)  # what hung must not disturb the trials that follow
            place.remove()
        seconds = round(time.monotonic() - started, 1)
        return Outcome(number, trial.name, trial.kind, ", ".join(run.deeds), code, seconds, "; ".join(wrong))

    def _judged(self, run: Run, trial: Trial) -> tuple[list[str], int | None]:
        """What does not hold after the trial, and after the run that follows; the exit code of the first."""
        place = run.place
        trial.do(run)
        code = fault_places.wait(run.process, run.limit_s)
        wrong = run.wrong + fault_judge.ended(code, run.allowed) + fault_judge.tracebacks(place.said())
        run.undo.close()
        wrong += fault_judge.left_processes(place.folder)
        measurements, damaged = fault_judge.rows(place.outputs)
        if code == 0 and not all(m.ok for m in fault_judge.last(measurements)):
            wrong.append("exit code 0, although a measurement failed")
        run.kept.look()
        fault_judge.age(place.temporary)

        again = fault_places.wait(place.start({}), run.limit_s)
        then = fault_judge.ended(again, {0}) + fault_judge.tracebacks(place.said())
        wrong += [*damaged, *(f"the next run: {text}" for text in then)]
        wrong += fault_judge.results(place.outputs, run.kept, run.template.rows)
        return wrong + fault_judge.left_processes(place.folder) + fault_judge.left_files(place.temporary), code

    def _template(self, kind: str) -> fault_places.Template:
        if kind not in self._templates:
            place = fault_places.Place(self.folder / f"no-fault-{kind}", kind, self.folder / "home")
            self._places.callback(place.remove)
            self._templates[kind] = fault_places.template(place, TEMPLATE_LIMIT_S)
        return self._templates[kind]


def in_turn(seed: int, trials: list[Trial]) -> Iterator[tuple[int, Trial]]:
    """All trials again and again, each time in another random order; numbered."""
    chance, number = random.Random(seed), itertools.count(1)
    while True:
        for trial in chance.sample(trials, len(trials)):
            yield next(number), trial


def write(folder: Path, outcomes: list[Outcome]) -> None:
    """The table, as Markdown and as CSV."""
    names = [one.name for one in fields(Outcome)]
    with (folder / "faults.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, names)
        rows.writeheader()
        rows.writerows(map(asdict, outcomes))
    lines = [f"| {' | '.join(name.replace('_', ' ') for name in names)} |", f"|{'---|' * len(names)}"]
    for outcome in outcomes:
        cells = [str(value).replace("|", "\\|").replace("\n", " ") for value in asdict(outcome).values()]
        lines.append(f"| {' | '.join([*cells[:-1], cells[-1] or 'nothing'])} |")
    (folder / "faults.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Make trials until the time is over; 1 if one broke something."""
    parser = argparse.ArgumentParser(description="Kills and faults at random moments, and what holds all the same.")
    parser.add_argument("--minutes", type=float, default=30.0, help="after which no new trial begins (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of the order and the moments (default: 0)")
    parser.add_argument("--to", type=Path, help="folder of the table (default: a new one among the temporary files)")
    parser.add_argument("--only", default="", help="trials with this in their name, such as 'Ctrl-C' or 'gate'")
    arguments = parser.parse_args()
    trials = [trial for trial in fault_trials.TRIALS if arguments.only in str(trial)]
    if not trials:
        parser.error(f"--only {arguments.only!r}: there are\n" + "\n".join(map(str, fault_trials.TRIALS)))
    reports = arguments.to or Path(tempfile.mkdtemp(prefix="faults-of-benchlib-"))
    reports.mkdir(parents=True, exist_ok=True)
    fault_subject.know_doubles()
    outcomes: list[Outcome] = []
    end = time.monotonic() + 60 * arguments.minutes
    bench = Bench(Path(tempfile.mkdtemp(prefix="bf-")), arguments.seed)  # a short name: sockets lie in there
    try:
        with fault_trials.interruptible(), closing(bench):
            for number, trial in in_turn(arguments.seed, trials):
                if time.monotonic() > end:
                    break
                outcome = bench.outcome(number, trial, reports)
                outcomes.append(outcome)
                write(reports, outcomes)
                print(f"{number}  {trial}, {outcome.what}: {outcome.wrong or 'nothing wrong'}", flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    broken = sum(bool(outcome.wrong) for outcome in outcomes)
    print(f"{len(outcomes)} trials, {broken} of them broke something: {reports / 'faults.md'}")
    return 1 if broken else 0


def _logs(place: fault_places.Place) -> list[Path]:
    return sorted(place.folder.glob("said*.txt"))


if __name__ == "__main__":
    sys.exit(main())
