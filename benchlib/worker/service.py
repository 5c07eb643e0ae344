"""The process that runs a condition. It gets JSON documents over its channel, calls the method ``do_NAME`` that each
names in ``do``, and sends back the result. Between them it sleeps in a read.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import resource
import sys
import sysconfig
import time
import traceback
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchlib import frameworks, workloads
from benchlib.frameworks import _work
from benchlib.worker import PLUGINS, check, extend, files, warmup
from benchlib.worker.batches import Batches

if TYPE_CHECKING:
    from benchlib.worker.channel import Channel

if os.environ.get(PLUGINS):
    extend(map(Path, os.environ[PLUGINS].split(os.pathsep)), (frameworks, workloads))

DISTINCT_BATCHES = 8  # cycled through in blocks: enough that no step finds the data of the one before in the cache


class Worker:
    """Answers requests; one per process."""

    def __init__(self, channel: Channel, rank: int = 0) -> None:
        self.channel, self.rank = channel, rank  # of a data-parallel group; 0 where there is none

    def serve(self) -> None:
        """Answer requests until the parent closes the channel or says ``end``."""
        while True:
            request = self.channel.receive()
            if request["do"] == "end":
                return
            try:
                answer = getattr(self, f"do_{request.pop('do')}")(**request)
            except Exception as error:  # whatever it is, the parent records it; this process then ends
                answer = {"exception": type(error).__name__, "error": str(error), "traceback": traceback.format_exc()}
                self.channel.send(answer)
                return
            self.channel.send(answer)

    def do_open(
        self,
        framework: str,
        device: str,
        mode: str,
        precision: str,
        seed: int,
        cpus: int | None,
        world_size: int,
        communication: bool,
        knobs: dict[str, str],
    ) -> dict[str, Any]:
        if cpus is not None:
            first = cpus * self.rank
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[first : first + cpus])
        self.framework = framework
        session_class = frameworks.session_class(framework)
        self.session = session_class(device, mode, precision, seed, knobs)
        self.world_size = world_size
        if world_size > 1 and self.session.join(communication) != (self.rank, world_size):
            raise RuntimeError(f"this is process {self.rank} of {world_size}, but {framework} does not say so")
        versions = {**session_class.versions(), "numpy": np.__version__}
        return {"versions": versions, "rss_mib": _status_mib("VmRSS")}

    def do_build(
        self,
        workload: str,
        values: dict[str, Any],
        batch_size: int,
        learning_rate: float | None,
        data: str,
        weights: str,
        orders: str | None,
    ) -> dict[str, Any]:
        self.workload, self.values = workloads.load(workload), values
        self.settings = _work.Settings(self.session, self.framework, workload)
        module = importlib.import_module(f"benchlib.workloads.{workload}.{self.framework}")
        part = (self.rank, self.world_size)
        self.batches = Batches(Path(data), batch_size, orders and Path(orders), self.workload.fields, part)
        self.batch_size = batch_size // self.world_size
        self.predicts = hasattr(module, "predict")
        self.initial = {name: np.array(array) for name, array in files.arrays(Path(weights)).items()}
        frameworks.build(self.session, self.workload, module, values, learning_rate)
        self.session.load(self.initial)
        operator = self.workload.kind == "operator"
        first = self.batches.operator_batches() if operator else islice(self.batches.epoch(1), DISTINCT_BATCHES)
        self.ready = [self.session.put(arrays) for arrays in first]
        loaded = self.session.weights()
        trained = [name for name, weight in self.workload.weights(values).items() if weight.trained]
        return {
            "parameters": int(sum(loaded[name].size for name in trained)),
            "weights_sha256": digest(loaded),
            "weights_file_sha256": digest(self.initial),
            "data_sha256": files.digest(Path(data)),
            "order_sha256": "" if operator else self.batches.order_digest(),
        }

    def do_first_step(self) -> dict[str, Any]:
        block = self.do_block(1)
        self.settings.keep()
        return {"wall_s": block["wall_s"]}

    def do_warm_up(self, limit_s: float) -> dict[str, Any]:
        """See ``steady``; ``chunks`` are seconds of each, by the wall and of CPU."""
        self.chunks: list[tuple[float, float]] = []
        return {**asdict(warmup.warm_up(self._agree, limit_s)), "chunks": self.chunks}

    def _agree(self, steps: int) -> float:
        """Seconds of so many steps; the same for all processes of a group, or they would not go on together."""
        block = self.do_block(steps)
        self.chunks.append((block["wall_s"], block["cpu_s"]))
        return self.session.agree(block["wall_s"]) if self.world_size > 1 else block["wall_s"]

    def do_block(self, steps: int) -> dict[str, Any]:
        return self._run([self.ready[i % len(self.ready)] for i in range(steps)])[0]

    def do_reset(self) -> dict[str, Any]:
        self.session.load(self.initial)
        return {}

    def do_epoch(self, number: int, orders: str, block_steps: int) -> dict[str, Any]:
        """Train one epoch. Batches of a block are put on the device before its clock starts."""
        losses: list[float] = []
        self.batches.take_orders(Path(orders))
        batches = self.batches.epoch(number)
        while True:
            ready = [self.session.put(arrays) for arrays in islice(batches, block_steps)]
            if not ready:
                break
            block, results = self._run(ready)
            losses += [float(self.session.to_numpy(loss)) for loss in results]
            self.channel.send({"block": block})
        return {"loss": float(np.mean(losses)), "order_sha256": self.batches.order_digest(number)}

    def do_predict(self, file: str) -> dict[str, Any]:
        """Predict every test sample (classes; of a graph: for each node; words), in order."""
        predicted = []
        for arrays, real in self.batches.test(self.batch_size):
            predicted.append(check.predict(self.session, self.session.put(arrays), self.predicts)[:real])
        np.save(file, np.concatenate(predicted).astype(np.int32))
        return {}

    def do_check(self, file: str, **asked: Any) -> dict[str, Any]:
        """Pack the arrays of a trial in ``file``, none where masks cannot be given, and say why. Each process of a
        group has its own file: see ``check.compute_trial``.
        """
        built, arrays, why = (self.session, self.workload, self.values, self.initial, self.ready), {}, ""
        try:
            arrays = check.compute_trial(*built, predicts=self.predicts, **asked)
        except frameworks.NoMasks as reason:
            why = str(reason)
        files.pack(f"{file}.{self.rank}.npz" if self.world_size > 1 else file, arrays)
        return {"why": why}

    def do_probe(self, records: list[int], file: str) -> dict[str, Any]:
        """Pack the probe of this session's model, which trials do not see, in ``file``: see ``check.probe``."""
        files.pack(file, check.probe(self.session, self.workload, self.values, self.initial, self.ready[0], records))
        return {}

    def do_layers(self, trial: int, file: str) -> dict[str, Any]:
        """Pack the inputs and outputs of layers, with their numbers behind the names: see ``Session.layers``."""
        layers = self.session.layers(self.ready[trial % len(self.ready)])
        files.pack(file, {f"{name}/{number}": array for number, (name, array) in enumerate(layers)})
        return {}

    def do_work(self) -> dict[str, Any]:
        """The work of a step, as counted, and what the model's file does beside it: see ``frameworks._work``."""
        return _work.observe(self.session, self.settings, self.ready, self.batch_size)

    def do_train_on(self, step: int, weights: str | None, leads: bool, restarts: bool) -> dict[str, Any]:
        """Step number ``step`` (from 0) of training, and its loss; batches are those of the epochs that were given, and
        of these again. Given weights come with a fresh optimizer; for the one that leads, only if it ``restarts``.
        """
        epoch, position = divmod(step, self.batches.steps_per_epoch)
        if weights is not None and leads:
            np.savez(weights, **self.session.weights())
        if weights is not None and (restarts or not leads):
            with np.load(weights) as arrays:
                self.session.load(dict(arrays))
        before = self.session.weights()
        loss = self.session.step(self.session.put(self.batches.batch(1 + epoch % self.batches.epochs, position)))
        self.session.synchronize()
        after = self.session.weights()
        trained = [name for name, weight in self.workload.weights(self.values).items() if weight.trained]
        moved = sum(float(np.square(after[name].astype(float) - before[name]).sum()) for name in trained)
        return {"loss": float(self.session.to_numpy(loss)), "moved": moved**0.5}

    def do_imported(self, beside: list[str]) -> dict[str, Any]:
        """The files (empty: none, or not compiled here) of all modules that this process imported, by name. Left out
        are Python's, the framework's, others in site-packages or ``beside``, and those made in the working directory.
        """
        framework = frameworks.package(self.framework).partition(".")[0]
        libraries = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")]
        elsewhere = tuple(os.path.join(folder, "") for folder in (*libraries, os.getcwd(), *beside))
        found = {}
        for name, module in sorted(sys.modules.items()):
            top, file = name.partition(".")[0], getattr(module, "__file__", None) or ""
            packaged = {"site-packages", "dist-packages"} & set(Path(file).parts)
            main = module is sys.modules["__main__"]  # which multiprocessing knows by another name, too
            others = packaged or main or top == framework or file.startswith(elsewhere)
            if top == "benchlib" or (file and not others):
                loader = type(getattr(getattr(module, "__spec__", None), "loader", None)).__name__
                cached = top == "benchlib" and file.endswith(".py") and loader != "Afresh"  # perhaps of a .pyc
                found[name] = "" if cached else file
        return {"files": found}

    def do_planted(self, seconds: float, takes: int) -> dict[str, Any]:
        """The same steps, of about ``seconds`` but one at least, by the timer and until the weights that they trained
        can be read.
        """
        steps = max(1, round(seconds / max(min(self._until_read(1) for _ in range(3)), 1e-6)))
        timed_s, one_s, more_s = [], [], []
        for _ in range(takes):
            timed_s.append(self.do_block(steps)["wall_s"])
            one_s.append(self._until_read(1))
            more_s.append(self._until_read(1 + steps))  # about as long as is timed: other work hits both alike
        # Reading takes its time, too: copies from a device. It is in both, and not in their difference.
        return {"known_s": [max(0.0, min(more_s) - min(one_s))], "timed_s": timed_s}

    def _until_read(self, steps: int) -> float:
        """Seconds that steps take until the weights can be read. Work queued before is over when it starts."""
        self.session.weights()
        started = time.perf_counter()
        for i in range(steps):
            self.session.step(self.ready[i % len(self.ready)])
        self.session.weights()
        return time.perf_counter() - started

    def do_memory(self) -> dict[str, Any]:
        device = {f"device_{name}": value for name, value in self.session.device_memory().items()}
        own = {"peak": _status_mib("VmHWM"), "steady": _status_mib("VmRSS"), "private": _status_mib("RssAnon")}
        return {**own, **device, "settings": self.settings.require()}

    def _run(self, batches: list[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Time one step per batch as a block; the clock stops when the device has done all of it. Also returns the
        losses; an operator's outputs are as large as its inputs, and are let go at once.
        """
        step = self.session.step
        if self.world_size > 1:
            self.session.agree(0.0)  # who began before the others would wait for them on the clock
        self.session.synchronize()
        cpu = _cpu_s()
        started = time.perf_counter()
        first = self.session.mark()
        if self.workload.kind == "operator":
            results = []
            for batch in batches:
                step(batch)
        else:
            results = [step(batch) for batch in batches]
        last = self.session.mark()
        self.session.synchronize()
        wall = time.perf_counter() - started
        block = {"started_s": started, "wall_s": wall, "cpu_s": _cpu_s() - cpu, "steps": len(batches)}
        if first is not None:
            block["device_s"] = self.session.elapsed_s(first, last)
        return {**block, "samples": len(batches) * self.batch_size}, results


def digest(arrays: dict[str, np.ndarray]) -> str:
    """A hash of named arrays, of names, shapes and bytes as float32."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype=np.float32)
        found.update(f"{name}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def _cpu_s() -> float:
    """CPU seconds of this process so far, all threads, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _status_mib(field: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")
