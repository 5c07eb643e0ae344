"""Does one of our own workloads, written as a user writes a model, give the same numbers?

    .venv/bin/python benchmarks/short_way.py [--minutes 3]

``cnn`` on images of 8x8 as in ``benchlib/workloads/cnn``, and as in ``benchmarks/short``: PyTorch in eager mode and JAX
in graph mode, as installed. A comparison each, the short way's first and last; the ratios' intervals should meet.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchlib import Condition, Lab, workload_from

SHORT = Path(__file__).with_name("short")


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="of each comparison, beside its certificates")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workload = workload_from(SHORT / "cnn_torch.py", SHORT / "cnn_jax.py", outputs=name)
        pytorch, jax = workload.conditions()[0], workload.conditions("graph")[1]
        long = Condition(workload="cnn", hyperparameters={"image_size": 8}, lane="default", batch_size=64)
        short, ours = [pytorch, jax], [long, long.but(framework="jax", environment=jax.environment, mode="graph")]
        for number, (what, pair) in enumerate([("short", short), ("ours", ours), ("short", short)]):
            compared = Lab(outputs=Path(name, str(number))).compare(pair, precision=0.03, budget_s=60 * given.minutes)
            control, ratio = (
                f"{row.ratio:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in compared.ratios().itertuples()
            )
            steps = ", ".join(f"{row.step_ms:.2f} ms" for row in compared.throughput().itertuples())
            print(f"{what}: JAX / PyTorch {ratio}, A/A {control}; {steps}", flush=True)


if __name__ == "__main__":
    main()
