"""Data-parallel training as anybody would write it for torchrun, for ``group_overhead.py``: for each line that it reads
the first process prints the seconds of a step.

    torchrun --standalone --nproc-per-node 2 hand_written_group.py JOB

JOB is a worker's job in JSON, for where data and weights lie, and how large the whole batch is. Nothing of benchlib's
measuring is in here: the model only. Each process takes its own core, and model and images are laid out as in the tuned
lane (``channels_last``).
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from benchlib.workloads.cnn.pytorch import Model

STEPS = 20


def main() -> None:
    """Train, and answer each line with the seconds of a step."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[rank]])  # before gloo starts its threads, as taskset would
    dist.init_process_group("gloo")
    job = json.loads(sys.argv[1])
    data, weights, share = Path(job["data"]), Path(job["weights"]), job["batch_size"] // size
    torch.manual_seed(0)
    model = Model(job["values"])
    model.load_state_dict({path.stem: torch.tensor(np.load(path)) for path in weights.glob("*.npy")})
    model = DistributedDataParallel(model.to(memory_format=torch.channels_last))
    inputs, labels = np.load(data / "train_inputs.npy"), np.load(data / "train_labels.npy")
    order = np.random.default_rng([0, 1]).permutation(len(labels))
    starts = [i * job["batch_size"] + rank * share for i in range(8)]
    batches = [order[start : start + share] for start in starts]
    batches = [(torch.tensor(inputs[batch]), torch.tensor(labels[batch]).long()) for batch in batches]
    batches = [(images.to(memory_format=torch.channels_last), targets) for images, targets in batches]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(steps: int) -> float:
        started = time.perf_counter()
        for i in range(steps):
            images, targets = batches[i % len(batches)]
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()
        return (time.perf_counter() - started) / steps

    train(2 * STEPS)
    go_on = torch.zeros(1)
    while True:
        if rank == 0:
            go_on.fill_(bool(sys.stdin.readline()))
        dist.broadcast(go_on, src=0)
        if not go_on.item():
            break
        seconds = train(STEPS)
        if rank == 0:
            print(seconds, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
