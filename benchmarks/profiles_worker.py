"""The process that ``profiles.py`` starts: ``python profiles_worker.py JSON`` in the environment of a framework, which
has numpy beside it and no more. Prints a JSON document: the times of a step and of what feeds it, and every kind of
operator in the profiled steps.

What a profiler sees differs. PyTorch's gives each operator's own time in the thread that calls it. MindSpore's sees
operators only: what is left of a step is Python and dispatch. JAX's sees the instructions that XLA made of the step,
which are named here after what they compute most of (see :class:`Instructions`); TensorFlow's sees the kernels of its
graph. Both have several threads, on which operators run side by side, so that shares can add up to more than 100 %, and
of an operator that is spread over threads the time is that of the first. MXNet's sees whole segments of a graph,
because it hands them to its engine at once: for the profile, not for the time of a step, each operator is a segment.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchlib.worker.service import Worker

STEPS = 5  # that are profiled
TIMED_S = 3.0
WARM_UP_S = 20.0

Event = tuple[str, float, float]
"""Of an operator in a thread: its kind, start and end (ms)."""


def main() -> None:
    """Print what was asked for."""
    given = json.loads(sys.argv[1])
    worker = Worker(None)  # nobody asks it over a channel
    worker.do_open(**given["open"])
    worker.do_build(**given["build"])
    worker.do_first_step()
    worker.do_warm_up(limit_s=WARM_UP_S)
    session, batches = worker.session, worker.batches
    training = worker.workload.kind == "training"
    schedule = getattr(session, "_schedule", None)
    print(
        json.dumps(
            {
                "step_s": _seconds(lambda: worker.do_block(steps=1)),
                "feeding_s": _seconds(
                    lambda: session.put(batches.batch(1, 0) if training else batches.operator_batches()[0])
                ),
                "schedule_s": _seconds(schedule.step) if schedule else None,
                "operators": PROFILERS[worker.framework](worker),
            }
        )
    )


def _seconds(action: Callable[[], object]) -> float:
    """The median time of an action, repeated for a while."""
    times: list[float] = []
    while sum(times) < TIMED_S and len(times) < 200:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def _row(operator: str, calls: float, ms: float) -> dict[str, Any]:
    return {"operator": operator, "calls a step": calls / STEPS, "ms a step": ms / STEPS}


def _pytorch(worker: Worker) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        worker.do_block(steps=STEPS)
    return [_row(one.key, one.count, one.self_cpu_time_total / 1000) for one in found.key_averages()]


def _mindspore(worker: Worker) -> list[dict[str, Any]]:
    from mindspore.profiler import ProfilerActivity, profile

    found = profile(activities=[ProfilerActivity.CPU], start_profile=False)
    found.start()
    worker.do_block(steps=STEPS)
    found.stop()
    (path,) = Path.cwd().glob("data/*/FRAMEWORK/cpu_op_type_info_0.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            _row(one["op_type"], float(one["type_occurrences"]), float(one["total_compute_time"]))
            for one in csv.DictReader(file)
        ]


def _jax(worker: Worker) -> list[dict[str, Any]]:
    import jax

    session = worker.session
    state = (session._trained, session._state) if session._trains else (session._trained,)
    step = session._step.lower(*state, session._kept, worker.ready[0]).compile()
    instructions = Instructions(step.as_text())
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace("profile", profiler_options=options):
        worker.do_block(steps=STEPS)
    (file,) = Path("profile").rglob("*.xplane.pb")
    threads = [
        [
            (instructions.kinds[event.name], event.start_ns / 1e6, (event.start_ns + event.duration_ns) / 1e6)
            for event in line.events
            if event.name in instructions.kinds
        ]
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes
        for line in plane.lines
    ]
    return _own_times(threads)


def _tensorflow(worker: Worker) -> list[dict[str, Any]]:
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tf.profiler.experimental.Profile("profile"):
        worker.do_block(steps=STEPS)
    (file,) = Path("profile").rglob("*.xplane.pb")
    threads = []
    for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
        # Kernels are called NODE:TYPE and have a name to be shown, their type; other events have none.
        kinds = {number: one.display_name for number, one in plane.event_metadata.items() if one.display_name}
        threads += [
            [
                (kinds[event.metadata_id], event.offset_ps / 1e9, (event.offset_ps + event.duration_ps) / 1e9)
                for event in line.events
                if event.metadata_id in kinds
            ]
            for line in plane.lines
        ]
    return _own_times(threads)


def _mxnet(worker: Worker) -> list[dict[str, Any]]:
    import mxnet as mx

    session, flags = worker.session, {"static_alloc": True, "static_shape": True}
    session._network.hybridize(backend=session._backend, **flags, forward_bulk_size=1, backward_bulk_size=1)
    worker.do_block(steps=1)
    mx.profiler.set_config(profile_symbolic=True, profile_imperative=True, aggregate_stats=True)
    mx.profiler.set_state("run")
    worker.do_block(steps=STEPS)
    mx.profiler.set_state("stop")
    operators = json.loads(mx.profiler.dumps(format="json"))["Time"]["operator"]
    return [_row(name, one["Count"], one["Total"]) for name, one in operators.items()]


PROFILERS = {
    "pytorch": _pytorch,
    "mindspore": _mindspore,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "mxnet": _mxnet,
}


def _own_times(threads: Iterable[list[Event]]) -> list[dict[str, Any]]:
    """A row for each kind of operator: its time less that of operators within it, such as those of a loop."""
    calls: dict[str, int] = defaultdict(int)
    ms: dict[str, float] = defaultdict(float)
    for events in threads:
        around: list[Event] = []
        for event in sorted(events, key=lambda one: (one[1], -one[2])):
            kind, start, end = event
            while around and around[-1][2] <= start:
                around.pop()
            if around:
                ms[around[-1][0]] -= end - start
            calls[kind] += 1
            ms[kind] += end - start
            around.append(event)
    return [_row(kind, calls[kind], ms[kind]) for kind in calls]


class Instructions:
    """What the instructions of a compiled step compute, read from XLA's text of it: ``kinds`` by their names.

    A fusion is called after the costliest operation in it, and by its own name where that is one of many cheap ones.
    What flax and JAX say of where it comes from is kept as ``forward`` or ``backward``; XLA loses it where it rewrites
    an operation, as it does the gradients of convolutions.
    """

    COSTLY = ("convolution", "dot", "sort", "select-and-scatter", "scatter", "reduce-window", "gather", "reduce")

    _COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$")
    _INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.-]+) = .*? ([a-z][a-z0-9-]*)\(")
    _CALLED = re.compile(r"calls=%?([\w.-]+)")
    _ORIGIN = re.compile(r'op_name="([^"]*)"')

    def __init__(self, text: str) -> None:
        inside: dict[str, list[tuple[str, str]]] = {}  # operations of a computation, and where they come from
        every: list[tuple[str, str, str, str | None]] = []
        of = ""
        for line in text.splitlines():
            if computation := self._COMPUTATION.match(line):
                of = computation[1]
                inside[of] = []
            elif instruction := self._INSTRUCTION.match(line):
                name, operation = instruction.groups()
                origin, called = self._ORIGIN.search(line), self._CALLED.search(line)
                inside[of].append((operation, origin[1] if origin else ""))
                every.append((name, operation, origin[1] if origin else "", called and called[1]))
        self.kinds = {
            name: self._kind(name, [(operation, origin), *inside.get(called or "", [])])
            for name, operation, origin, called in every
        }

    def _kind(self, name: str, operations: list[tuple[str, str]]) -> str:
        there = {operation for operation, _ in operations}
        own = operations[0][0] if operations[0][0] != "fusion" else re.sub(r"(\.\d+|\.clone)+$", "", name)
        kind = next((operation for operation in self.COSTLY if operation in there), own)
        origins = " ".join(origin for _, origin in operations)
        direction = " backward" if "transpose(" in origins else " forward" if "jvp(" in origins else ""
        return kind + direction


if __name__ == "__main__":
    main()
