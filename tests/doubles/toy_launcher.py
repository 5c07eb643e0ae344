"""Starts the toy framework's data-parallel processes, as torchrun does for PyTorch's."""

import os
import subprocess
import sys

size, script = int(sys.argv[1]), sys.argv[2:]
processes = [
    subprocess.Popen(
        [sys.executable, *script],
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size)},
        start_new_session=True,
    )
    for rank in range(size)
]
statuses = [os.wait()[1] for _ in processes]  # in whatever order they end
sys.exit(any(statuses))
