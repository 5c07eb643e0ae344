"""A worker and the loop that anybody would write, in one process and over the same model, for ``overhead.py``.

    python beside.py JOB

JOB is the worker's job in JSON. A line ``worker`` is answered with the seconds of a step in a worker's block, a line
``loop`` with those in the loop.
"""

import json
import sys
import time

import torch

from benchlib.worker.service import Worker

STEPS = 40


def main() -> None:
    """Train, and answer each line with the seconds of a step."""
    worker = Worker(None)  # nobody asks it over a channel
    knobs = {"channels_last": "on"}
    worker.do_open(framework="pytorch", device="cpu", mode="eager", precision="fp32", seed=0, cpus=None, knobs=knobs)
    worker.do_build(**json.loads(sys.argv[1]))
    model, optimizer, batches = worker.session._model, worker.session._optimizer, worker.ready

    def train(steps: int) -> float:
        started = time.perf_counter()
        for i in range(steps):
            images, targets = batches[i % len(batches)]
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()
        return (time.perf_counter() - started) / steps

    worker.do_block(steps=2 * STEPS)
    for line in sys.stdin:
        seconds = train(STEPS) if line == "loop\n" else worker.do_block(steps=STEPS)["wall_s"] / STEPS
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
