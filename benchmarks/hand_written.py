"""A training loop as anybody would write it, for ``overhead.py``: prints the seconds of a step when it reads a line.

    python hand_written.py JOB

JOB is a worker's job in JSON, for where data and weights lie, and how large a batch is. Nothing of benchlib's measuring
is in here: the model only. Model and images are laid out as the tuned lane has them (``channels_last``); its other
knobs are environment variables.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from benchlib.workloads.cnn.pytorch import Model

STEPS = 40


def main() -> None:
    """Train, and answer each line with the seconds of a step."""
    job = json.loads(sys.argv[1])
    data, weights, batch_size = Path(job["data"]), Path(job["weights"]), job["batch_size"]
    torch.manual_seed(0)
    model = Model(job["values"])
    model.load_state_dict({path.stem: torch.tensor(np.load(path)) for path in weights.glob("*.npy")})
    model = model.to(memory_format=torch.channels_last)
    inputs, labels = np.load(data / "train_inputs.npy"), np.load(data / "train_labels.npy")
    order = np.random.default_rng([0, 1]).permutation(len(labels))
    batches = [order[i * batch_size : (i + 1) * batch_size] for i in range(8)]
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
    for _ in sys.stdin:
        print(train(STEPS), flush=True)


if __name__ == "__main__":
    main()
