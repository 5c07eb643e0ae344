"""Are a user's two files matched and certified, and is a porting error found, with its layer?

    .venv/bin/python benchmarks/porting.py [--only WORDS] [--errors] [--to FOLDER]

Certifies the pairs of models in ``benchmarks/pairs``, written before the matching was looked at (06 in JAX: after), by
``benchlib certify`` in a folder of its own. With ``--errors`` the errors of ``errors.yaml`` are planted, one at a time,
and have to be called different, with the layer where the two part. ``FOLDER`` (``outputs/benchmarks/porting``) gets
``porting.csv``, a row as soon as it is known. The exit code is 1 if a pair is not certified, or too few errors found.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAIRS = Path(__file__).with_name("pairs")
FOUND, NAMED = 18, 15  # of the twenty errors: at least so many found, and with the right layer


def main() -> None:
    """Certify, and say what was found."""
    parser = argparse.ArgumentParser(description="Pairs of models in two frameworks, and porting errors in them.")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--to", type=Path, default=ROOT / "outputs" / "benchmarks" / "porting")
    arguments = parser.parse_args()
    planted = yaml.safe_load((PAIRS / "errors.yaml").read_text(encoding="utf-8"))
    cases = planted if arguments.errors else [{"pair": one.name} for one in sorted(PAIRS.iterdir()) if one.is_dir()]
    cases = [one for one in cases if all(word in f"{one['pair']} {one.get('what', '')}" for word in arguments.only)]
    arguments.to.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        rows.append(tried(case, (arguments.to / f"case-{number}").resolve()))
        print(*rows[-1].values(), sep=" | ", flush=True)
        with (arguments.to / "porting.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[-1])
            writer.writeheader()
            writer.writerows(rows)
    found, named = (sum(row[name] for row in rows) for name in ("as_it_should", "layer_named"))
    print(f"{found} of {len(rows)} as they should be; of errors with a layer, {named} named")
    share = len(rows) / len(planted)
    sys.exit(found < FOUND * share or named < NAMED * share if arguments.errors else found < len(rows))


def tried(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A row: the verdict on a pair, and on an error planted in it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAIRS / case["pair"], folder, ignore=shutil.ignore_patterns("__pycache__"))
    if "old" in case:
        path = folder / case["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(case["old"]) != 1:
            raise SystemExit(f"{path}: what is replaced is there {text.count(case['old'])} times: {case['old']}")
        path.write_text(text.replace(case["old"], case["new"]), encoding="utf-8")
    files = sorted((path.name for path in folder.glob("*.py")), key=lambda name: name != "mine_torch.py")
    started = time.monotonic()
    command = [sys.executable, "-m", "benchlib", "certify", *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = " ".join(line for line in (done.stdout + done.stderr).splitlines() if "checking that" not in line)
    layer = case.get("layer", "")
    return {
        "pair": case["pair"],
        "what": case.get("what", ""),
        "layer": layer,
        "as_it_should": (done.returncode != 0) == ("old" in case),
        "layer_named": bool(layer) and layer in said,
        "seconds": round(time.monotonic() - started),
        "said": said[said.find("PyTorch") :],
    }


if __name__ == "__main__":
    main()
