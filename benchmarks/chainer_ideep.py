"""Where does a step of Chainer with iDeep take its time?

    .environments/chainer-ideep/bin/python benchmarks/chainer_ideep.py

The loop by hand of ``by_hand_loops.py`` (``cnn``, images of 8x8, batch 64) in processes of its own: milliseconds of 60
steps with other numbers of threads, and with ``MKLDNN_VERBOSE=1`` the share of each kind of kernel.
"""

import os
import subprocess
import sys
import time
from collections import Counter

STEPS, BATCH = 60, 64
VARIABLES = ("", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "OMP_WAIT_POLICY=passive", "MKLDNN_VERBOSE=1")


def main() -> None:
    """Print a line for each setting, and the kernels."""
    for variable in VARIABLES:
        own = dict(one.split("=") for one in [variable, "CHAINER_TYPE_CHECK=0"] if one)
        command = [sys.executable, __file__, "steps"]
        done = subprocess.run(command, env={**os.environ, **own}, stdout=subprocess.PIPE, check=True)
        lines = done.stdout.decode().splitlines()
        print(variable or "as installed", lines[-1])
    kernels = Counter()
    for line in lines:
        if line.startswith("mkldnn_verbose,exec"):
            fields = line.split(",")
            kernels[" ".join(fields[2:5])] += float(fields[-1])
    for kernel, spent in kernels.most_common(4):
        print(f"{kernel}: {spent / (STEPS + 10):.1f} ms of a step")


def run_steps() -> None:
    """Print the medians of the loop's steps."""
    import by_hand_loops
    import numpy as np

    rng = np.random.RandomState(0)
    images = rng.rand(10, BATCH, 3, 8, 8).astype(np.float32)
    labels = rng.randint(0, 10, (10, BATCH)).astype(np.int32)
    values = {"image_size": 8, "conv_dropout": 0.25, "dense_dropout": 0.5, "learning_rate": 0.01, "momentum": 0.9}
    step, batches, _ = by_hand_loops.chainer(values, images, labels)
    spent = []
    for number in range(STEPS + 10):
        began = time.perf_counter(), time.process_time()
        step(batches[number % 10])
        spent.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    wall, of_cpu = 1e3 * np.median(spent[10:], axis=0)
    print(f"{wall:.0f} ms a step, {of_cpu:.0f} ms of the CPU")


if __name__ == "__main__":
    run_steps() if sys.argv[1:] else main()
