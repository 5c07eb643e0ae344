"""One visit to a machine with an NVIDIA GPU: is benchlib right there, and what are the first ratios?

    python benchmarks/gpu.py --output FOLDER [--wheels FOLDER] [--minutes 8] [--commit HASH]
    python benchmarks/gpu.py --output FOLDER --cpu                  # the same at small sizes, to try this script
    python benchmarks/gpu.py --report FOLDER/gpu.jsonl --output DOCS   # elsewhere: gpu.md
    python benchmarks/gpu.py --rows FOLDER/gpu.jsonl --output RESULTS  # elsewhere: for benchlib merge

It installs nothing and needs no network: benchlib is imported from this checkout, and packages that the interpreter
lacks (pydantic) are unpacked from a folder of wheels. Every part is a process with a time limit, killed with all that
it has started when the limit is over; the whole ends in time whatever hangs. Results go to ``gpu.jsonl`` as they come,
a JSON document a line: ``kind`` says what it is.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = "gpu.jsonl"
MOST_BYTES = 15_500_000  # of the file: a visit's results have to fit 16 MB
LAST_S = 20.0  # at the end of the visit: what parts that were killed have left is collected
TAIL = 3000  # characters of what a failed part has printed
HANG = "BENCHLIB_GPU_HANG"  # the part of this name hangs: a test of the limits
PATIENCE_S = 140.0  # a worker that is silent for so long counts as hung
SIZES = {  # of each workload on a GPU, and where this is tried on a CPU
    "conv2d": (
        {"hyperparameters": {"image_size": 64}, "batch_size": 64},
        {"hyperparameters": {"image_size": 8, "in_channels": 4, "out_channels": 4}, "batch_size": 4},
    ),
    "cnn": ({"batch_size": 256}, {"hyperparameters": {"image_size": 8}, "batch_size": 16}),
    "resnet50_inference": ({"batch_size": 16}, {"hyperparameters": {"image_size": 32}, "batch_size": 2}),
    "gru": ({"batch_size": 256}, {"hyperparameters": {"hidden": 16, "embedding": 16}, "batch_size": 16}),
}


def append(file: Path, /, **document: Any) -> None:
    """Write a line, whole, whoever else writes; one that was cut off by a kill does not spoil the next."""
    text = json.dumps({"at": round(time.time(), 1), **document}, default=str) + "\n"
    with open(file, "ab+") as target:
        fcntl.flock(target, fcntl.LOCK_EX)
        end = target.seek(0, os.SEEK_END)
        if end + len(text) > MOST_BYTES:
            text = json.dumps({"kind": "left out", "of": document.get("kind"), "bytes": len(text)}) + "\n"
        if end and not _ends_line(target, end):
            text = "\n" + text
        target.write(text.encode())
        target.flush()


def _ends_line(file: Any, end: int) -> bool:
    file.seek(end - 1)
    return file.read(1) == b"\n"


def read(file: Path) -> list[dict[str, Any]]:
    """The lines of a visit; those that were cut off are left out."""
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [one for one in found if isinstance(one, dict)]


@dataclass
class Part:
    """A process of its own, and how long it may take."""

    name: str
    command: list[str]
    limit_s: float
    process: subprocess.Popen | None = None
    started: float = 0.0
    log: Any = field(default_factory=tempfile.TemporaryFile)


@dataclass
class Stage:
    """Parts that may run side by side, ``at_once`` of them, and how long they may take together."""

    parts: list[Part]
    limit_s: float
    at_once: int = 1


def run(stages: Sequence[Stage], file: Path, until: float, environment: dict[str, str] | None = None) -> None:
    """Run stage after stage until a time of ``time.monotonic``; a line a part says how it ended."""
    for stage in stages:
        ends = min(until, time.monotonic() + stage.limit_s)
        waiting, running = list(stage.parts), []
        try:
            while waiting or running:
                now = time.monotonic()
                while waiting and len(running) < stage.at_once and now < ends:
                    running.append(_start(waiting.pop(0), environment))
                for part in list(running):
                    code, late = part.process.poll(), now > min(ends, part.started + part.limit_s)
                    if code is not None or late:
                        running.remove(part)
                        _end(part, file, "killed at its limit" if code is None else "done" if code == 0 else "failed")
                if now > ends and not running:
                    for part in waiting:
                        append(file, kind="part", name=part.name, ended="not started: no time was left", seconds=0)
                    waiting.clear()
                time.sleep(0.05)
        finally:  # an interrupt, or a kill by whoever started this
            for part in running:
                _end(part, file, "killed with the visit")


def _start(part: Part, environment: dict[str, str] | None) -> Part:
    print(f"{time.strftime('%H:%M:%S')} {part.name}", flush=True)
    part.started = time.monotonic()
    part.process = subprocess.Popen(
        part.command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=part.log,
        stderr=part.log,
        start_new_session=True,
    )
    return part


def _end(part: Part, file: Path, how: str) -> None:
    """End a part and all that it has started, which may be in sessions of their own."""
    for pid in [*_descendants(part.process.pid), part.process.pid]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(part.process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # what hangs in a driver dies when that lets go of it
        part.process.wait(timeout=2)
    seconds = round(time.monotonic() - part.started, 1)
    part.log.seek(0)
    said = part.log.read().decode(errors="replace")[-TAIL:]
    print(f"{time.strftime('%H:%M:%S')} {part.name}: {how}, {seconds} s", flush=True)
    append(file, kind="part", name=part.name, ended=how, seconds=seconds, code=part.process.returncode, said=said)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        left = [child for one in left for child in children.get(one, [])]
        found += left
    return found


# ---- what the parts do: from here on benchlib is needed


@dataclass(frozen=True)
class Visit:
    """Where a part works, and with what device and sizes."""

    file: Path
    folder: Path  # of the lab: it stays on the machine
    cpu: bool

    @property
    def device(self) -> str:
        return "cpu" if self.cpu else "cuda"

    def condition(self, workload: str, **choices: Any) -> Any:
        from benchlib import Condition

        sizes = SIZES[workload][self.cpu]
        return Condition(**{"workload": workload, "device": self.device, **sizes, **choices})

    def lab(self) -> Any:
        from benchlib import Lab

        return Lab(outputs=self.folder, patience_s=PATIENCE_S, after_keeping=lambda: self.collect())

    def write(self, kind: str, **document: Any) -> None:
        append(self.file, kind=kind, **document)

    def collect(self) -> None:
        """Write what lies in the lab's folder and has not been written: also what killed parts have left."""
        from benchlib.cache import Store

        (self.folder / "written").mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.glob("certificates/*.json")):
            if self._is_new(path):
                self.write("certificate", value=json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(self.folder.glob("measurements/*.parquet")):
            for one in Store(path.parent).load(path.stem) or [] if self._is_new(path) else []:
                self.write("measurement", value=json.loads(one.model_dump_json()))

    def _is_new(self, path: Path) -> bool:
        """Nobody has written it so far: parts run side by side."""
        try:
            (self.folder / "written" / f"{path.name}-{path.stat().st_mtime_ns}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def describe(visit: Visit) -> None:
    """The machine, the versions, and which devices frameworks can use."""
    from benchlib.provenance import installed, machine
    from benchlib.runner import availability

    visit.write(
        "machine",
        machine=machine.describe(),
        python=platform.python_version(),
        versions={name: installed.versions(name) for name in ("pytorch", "jax")},
        devices=availability.survey(),
    )


def check(visit: Visit, framework: str, mode: str) -> None:
    """What ``benchlib environment check`` asks of a session, on this device, a line a promise."""
    from benchlib import doctor

    inputs = visit.folder / f"check-{framework}-{mode}"
    for row in doctor.check(framework, inputs, PATIENCE_S, (mode,), device=visit.device):
        visit.write("check", framework=framework, mode=row.mode, what=row.what, passed=not row.why, why=row.why)


def timer(visit: Visit, framework: str, mode: str) -> None:
    """Planted work, and what the timer saw of it."""
    lab = visit.lab()
    for one in lab.check_timers([visit.condition("cnn", framework=framework, mode=mode)]):
        visit.write("timer", ok=one.ok, share=one.share, value=json.loads(one.model_dump_json()))


def certify(visit: Visit, framework: str, mode: str) -> None:
    """The certificates of workloads, in fp32, then in bf16. Nothing is timed: parts need not wait."""
    import benchlib.runner.machine_lock as turn

    turn.LOCK = visit.folder / f"{framework}-{mode}.lock"
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            visit.collect()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    lab, proved = visit.lab(), []
    # A trial certifies two that are quick; comparisons certify what is missing.
    for name in ("cnn", "conv2d") if visit.cpu else ("cnn", "resnet50_inference", "gru", "conv2d"):
        proved.append(visit.condition(name, framework=framework, mode=mode))
        lab.certify(proved[-1:])
    if (framework, mode) != ("pytorch", "graph"):
        lab.certify([one.but(precision="bf16") for one in proved if one.workload in ("cnn", "resnet50_inference")])
    over.set()
    watching.join()


def comparisons(visit: Visit) -> dict[str, list[Any]]:
    """The comparisons by name, the most telling first; the first condition is the baseline."""
    jax, graph, mixed, tuned = {"framework": "jax", "mode": "graph"}, {"mode": "graph"}, {"precision": "bf16"}, "tuned"
    on_cpu, small = [] if visit.cpu else [{"device": "cpu"}], {"batch_size": 8 if visit.cpu else 64}
    large = {"batch_size": 4 if visit.cpu else 64}

    def group(workload: str, *others: dict[str, Any], **same: Any) -> list[Any]:
        return [visit.condition(workload, **same, **one) for one in ({}, *others)]

    return {
        "small batch, CPU: cnn": group("cnn", jax, *on_cpu, **small),
        "inference, precisions: resnet50": group("resnet50_inference", jax, mixed),
        "frameworks, precisions: cnn": group("cnn", jax, mixed),
        "operator, tuned: conv2d": group("conv2d", jax, {"lane": tuned}),
        "recurrent: gru": group("gru", jax),
        "modes: cnn": group("cnn", graph),
        "large batch: resnet50": group("resnet50_inference", jax, {**jax, **mixed}, **large),
    }


def compare(visit: Visit, name: str) -> None:
    """The ratios of one of the comparisons: raw blocks, whenever a repetition is kept."""
    conditions = comparisons(visit)[name]
    asked = {"precision": 0.05, "budget_s": 20.0, "pilot": 3, "margin": 0.05}
    visit.write("comparison", name=name, conditions=[one.model_dump(mode="json") for one in conditions], **asked)
    try:
        visit.lab().compare(conditions, block_s=0.05, **asked)
    finally:
        visit.collect()


PARTS: dict[str, Callable[..., None]] = {
    "describe": describe,
    "check": check,
    "timer": timer,
    "certify": certify,
    "compare": compare,
    "collect": lambda visit: visit.collect(),
}


def work(arguments: argparse.Namespace) -> None:
    """Be one of the parts."""
    name, *details = json.loads(arguments.part)
    if os.environ.get(HANG) == name:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    import benchlib.runner.machine_lock as turn
    from benchlib.provenance import fingerprint

    if arguments.commit:
        fingerprint.commit = lambda: arguments.commit
    if arguments.cpu:  # a trial, whose numbers say nothing: it need not wait for whoever else measures here
        turn.LOCK = arguments.folder.parent / "trial.lock"
    visit = Visit(arguments.output / FILE, arguments.folder, arguments.cpu)
    try:
        PARTS[name](visit, *details)
    except Exception as error:
        visit.write("error", part=[name, *details], error=f"{type(error).__name__}: {error}"[:TAIL])
        traceback.print_exc()
        sys.exit(1)


def stages(arguments: argparse.Namespace, folder: Path) -> Iterator[Stage]:
    """The whole visit: what needs no quiet machine side by side, then what does, one after the other."""
    given = ["--output", str(arguments.output), "--folder", str(folder), "--commit", arguments.commit]
    command = [sys.executable, str(Path(__file__).resolve()), *given, *(["--cpu"] if arguments.cpu else [])]

    def part(limit_s: float, *what: str) -> Part:
        return Part(" ".join(what), [*command, "--part", json.dumps(what)], limit_s)

    pytorch, jax = ("pytorch", "eager"), ("jax", "graph")
    subjects = [("pytorch", "graph"), pytorch, jax, ("jax", "eager")]  # what takes longest first
    minutes = arguments.minutes / 8
    yield Stage([part(45, "describe")], 45)
    # On the two cores of a trial torch.compile would take all the time that there is.
    certified = subjects[1:3] if arguments.cpu else subjects[:3]
    beside = [part(600, "check", *one) for one in subjects] + [part(600, "certify", *one) for one in certified]
    yield Stage(beside, (300 if arguments.cpu else 180) * minutes, at_once=2 if arguments.cpu else len(beside))
    yield Stage([part(40 * minutes, "timer", *one) for one in (pytorch, jax)], 60 * minutes)
    names = comparisons(Visit(arguments.output, folder, arguments.cpu))
    yield Stage([part(150 * minutes, "compare", name) for name in names], 60 * arguments.minutes)


def visit(arguments: argparse.Namespace) -> None:
    """Run all parts within the minutes that are given."""
    until = time.monotonic() + 60 * arguments.minutes
    arguments.output.mkdir(parents=True, exist_ok=True)
    file, place = arguments.output / FILE, Path(tempfile.mkdtemp(prefix="benchlib-gpu-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        wheels = sorted(arguments.wheels.glob("*.whl")) if arguments.wheels else []
        for wheel in wheels:
            zipfile.ZipFile(wheel).extractall(place / "packages")
        sys.path[:0] = [str(ROOT), str(place / "packages")]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{place / 'packages'}", "PYTHONUNBUFFERED": "1"}
        arguments.commit = arguments.commit or _commit()
        append(file, kind="visit", commit=arguments.commit, cpu=arguments.cpu, wheels=[one.name for one in wheels])
        if arguments.resume:  # a certificate's name says all that it depends on: where that is another, it is unused
            (place / "lab" / "certificates").mkdir(parents=True)
            for one in [line["value"] for line in read(arguments.resume) if line.get("kind") == "certificate"]:
                (place / "lab" / "certificates" / f"{one['file']}.json").write_text(json.dumps(one), encoding="utf-8")
        chosen = list(stages(arguments, place / "lab"))
        for stage in chosen if arguments.only else []:
            stage.parts = [one for one in stage.parts if one.name.startswith(tuple(arguments.only.split(",")))]
        run(chosen, file, until - LAST_S, environment)
        left = ["--output", str(arguments.output), "--folder", str(place / "lab"), "--part", '["collect"]']
        last = Part("collect", [sys.executable, __file__, *left], LAST_S - 3)
        run([Stage([last], LAST_S - 3)], file, until, environment)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _commit() -> str:
    try:
        asked = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


# ---- the report, made elsewhere


def report(file: Path, output: Path) -> None:
    """Make ``gpu.md`` of a visit's file: what was checked, and the ratios, computed anew from the raw blocks."""
    from benchlib import Certificate, Comparison, Condition
    from benchlib.cache import Measurement
    from benchlib.equivalence import gate

    lines: dict[str, list[dict[str, Any]]] = {}
    for line in read(file):
        lines.setdefault(line.pop("kind", ""), []).append({name: one for name, one in line.items() if name != "at"})
    every = [
        Certificate.model_validate({name: one for name, one in line["value"].items() if name != "sha256"})
        for line in lines.get("certificate", [])
    ]
    certificates = {one.condition.key: one for one in every}
    measured: dict[str, list[Measurement]] = {}
    for value in (line["value"] for line in lines.get("measurement", [])):
        known = {name: one for name, one in value.items() if name in Measurement.model_fields}  # of an older visit, too
        one = Measurement.model_validate({**known, "condition": Condition(**value["condition"])})
        measured.setdefault(one.group, []).append(one)

    def certificate(condition: Condition) -> Certificate | None:
        gated = gate.adapt(condition)
        proofs = [certificates.get(one.key) for one in (*gate.prerequisites(gated), gated)]
        return next((one for one in proofs if one is None or not one.same), proofs[-1])

    first, machine = lines.get("visit", [{}])[0], lines.get("machine", [{}])[0]
    told = {"commit": first.get("commit"), "python": machine.get("python"), **machine.get("machine", {})}
    told |= {name: ", ".join(f"{k} {v}" for k, v in of.items()) for name, of in machine.get("versions", {}).items()}
    page = ["# A visit to a GPU machine", ""]
    page += ["Tried on a CPU at small sizes: nothing here is of a GPU.", ""] if first.get("cpu") else []
    page += _table("|", ([name, value] for name, value in told.items() if value))
    rows = ([one["name"], one["ended"], one["seconds"]] for one in lines.get("part", []))
    page += ["## Parts", "", *_table("part|ended|s", rows)]
    rows = ([c["framework"], c["mode"], c["what"], c["passed"] or c["why"][:300]] for c in lines.get("check", []))
    page += ["## What a session promises", "", *_table("framework|mode|promise|kept", rows)]
    rows = (
        [Condition(**t["value"]["condition"]), t["ok"], _number(t["share"]), _number(t["value"]["share_of_few"])]
        for t in lines.get("timer", [])
    )
    page += ["## Timers: the share that they saw of planted work", "", *_table("condition|ok|0.2 s|0.01 s", rows)]
    rows = ([one.condition, one.verdict, *_worst(one)] for one in certificates.values())
    page += ["## Certificates: the model of the reference on the CPU", ""]
    page += _table("condition|verdict|outputs|gradients|why not", rows)
    page += ["## Ratios: throughput over the baseline's, 95 % intervals over processes", ""]
    for line in lines.get("comparison", []):
        conditions = [Condition(**one) for one in line.pop("conditions")]
        wanted, name = {one.key for one in conditions}, line.pop("name")
        group = next((some for some in measured.values() if {m.condition.key for m in some} == wanted), [])
        proofs = {one.key: found for one in conditions if (found := certificate(one))}
        page += [f"### {name}", ""]
        if not group:
            page += ["Not measured.", ""]
            continue
        comparison = Comparison(conditions, group, proofs, **line)
        rows = (
            [
                one["label"],
                f"{one['samples_per_second']:,.0f}",
                _number(one["step_ms"]),
                one["processes"],
                one["failed"],
            ]
            for one in comparison.throughput().to_dict("records")
        )
        page += _table("condition|samples/s|step, ms|processes|failed", rows)
        rows = (
            [
                "A/A" if one["role"] == "control" else one["label"],
                *(_number(one[column]) for column in ("ratio", "low", "high")),
                one["verdict"],
            ]
            for one in comparison.ratios().to_dict("records")
        )
        page += _table("compared with the first|ratio|low|high|verdict", rows)
        settings = {m.condition.subject: m.settings for m in group if m.settings}
        page += [f"- {one}: {', '.join(f'{k} {v}' for k, v in of.items())}" for one, of in settings.items()]
        failures = {m.failure for m in group if m.failure}
        page += [f"- failed: {' '.join(one.split())[:600]}" for one in failures] + [""]
    errors = ([" ".join(one["part"]), one["error"][:500]] for one in lines.get("error", []))
    page += ["## Errors", "", *_table("part|error", errors)]
    output.mkdir(parents=True, exist_ok=True)
    (output / "gpu.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def rows(file: Path, output: Path) -> None:
    """Write a visit's measurements as a folder of results, for ``benchlib merge``. Those without a host are of its
    commit: they have keys of their own, and are in an interval with no other row.
    """
    from benchlib import Condition
    from benchlib.cache import Measurement, Store
    from benchlib.runner.jobs import key

    lines, files = read(file), dict[str, list[Measurement]]()
    commit = next((one.get("commit") for one in lines if one.get("kind") == "visit"), None) or "an unknown commit"
    for value in (one["value"] for one in lines if one.get("kind") == "measurement"):
        known = {name: one for name, one in value.items() if name in Measurement.model_fields}
        m = Measurement.model_validate({**known, "condition": Condition(**value["condition"])})
        if not m.machine.get("host"):
            m.machine["host"] = f"a visit at {commit}"
            m.group, m.file = (key(visit=commit, was=was) for was in (m.group, m.file))
        files.setdefault(m.file, []).append(m)
    (output / "measurements").mkdir(parents=True, exist_ok=True)
    for measured in files.values():
        Store(output / "measurements").save(measured)
    for value in (one["value"] for one in lines if one.get("kind") == "certificate"):
        if value.get("file"):
            (output / "certificates").mkdir(exist_ok=True)
            place = output / "certificates" / f"{value['file']}.json"
            place.write_text(json.dumps(value, indent=2), encoding="utf-8")


def _worst(certificate: Any) -> list[str]:
    worst = {check.name: check.worst for check in certificate.checks}
    why = certificate.reason or "; ".join(f"{check.name}: {check.why}" for check in certificate.checks if not check.ok)
    return [*(_number(worst.get(name)) for name in ("outputs", "gradients")), why[:300]]


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3g}"


def _table(columns: str, rows: Iterable[Sequence[Any]]) -> list[str]:
    named = columns.split("|")
    cells = [
        [" ".join(str(one).replace("|", "/").split()) for one in row] for row in (named, ["---"] * len(named), *rows)
    ]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def main() -> None:
    """Visit, or be a part of a visit, or make its report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder of gpu.jsonl, or of the report")
    parser.add_argument("--minutes", type=float, default=8.0, help="for all, whatever hangs (default 8)")
    parser.add_argument("--wheels", type=Path, help="folder of wheels that the interpreter lacks")
    parser.add_argument("--commit", default="", help="of this checkout, where there is no git")
    parser.add_argument("--cpu", action="store_true", help="try it on the CPU, at small sizes")
    parser.add_argument("--report", type=Path, metavar="FILE", help="make the report of a visit")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="write a visit's file as a folder of results")
    parser.add_argument("--only", help="names that parts begin with, such as describe,compare (default: all)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="take certificates of an earlier visit's file")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.output = arguments.output.resolve()
    if arguments.rows:
        rows(arguments.rows, arguments.output)
    elif arguments.report:
        report(arguments.report, arguments.output)
    elif arguments.part:
        work(arguments)
    else:
        visit(arguments)


if __name__ == "__main__":
    main()
