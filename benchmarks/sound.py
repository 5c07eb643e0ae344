"""Does the equivalence gate let sound models pass that are written in another way, or are unusual?

    .venv/bin/python benchmarks/sound.py [--only NAME ...] [--modes eager graph] [--to FOLDER]

``benchmarks/sound.yaml`` declares them. ``FOLDER`` (``outputs/benchmarks/sound``) gets a plug-in with a workload for
each. The reference is a framework ``plain`` of the plug-in: PyTorch's session with another name, whose file of a
workload has ``plain``. PyTorch's file has ``rewritten`` behind that, which takes the place of a part of it, and other
frameworks' files are as they are declared. All are certified in the lane ``tuned``. It prints a row for each: verdict,
reason, remarks. The exit code is 1 if one is not the same, but where it is known to be ``refused``, by which check.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import planting
import yaml

from benchlib import Lab, frameworks
from benchlib.condition import Condition
from benchlib.equivalence.certificate import SAME
from benchlib.runner import machine_lock

FOLDER = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "sound"
DECLARED = Path(__file__).with_suffix(".yaml")

WORKLOAD = '''"""A sound model: {what}."""

from benchlib.workloads import Gate, Hyperparameter, Weight, Workload
from benchlib.workloads.neutral import DROPOUT_OFF

PLACES = {dropout}
WEIGHTS = {weights}
SEQUENCES = {sequences}

WORKLOAD = Workload(
    name="{name}",
    title="{name}",
    kind="training",
    source="benchmarks/sound.yaml",
    data=("digits_sequence" if SEQUENCES else "digits",),
    weights=lambda values: {{name: Weight(*drawn, trained=trained) for name, (drawn, trained) in WEIGHTS.items()}},
    hyperparameters={{
        **({{
            "words": Hyperparameter(20, "size of the vocabulary"),
            "length": Hyperparameter(8, "tokens of a sequence"),
            "classes": Hyperparameter(10, "classes of the sequences"),
        }} if SEQUENCES else {{"image_size": Hyperparameter(8, "height and width of the images in pixels")}}),
        "dropout": Hyperparameter(0.5 if PLACES else 0.0, "dropout probability"),
    }},
    batch_size=16,
    learning_rate=0.1,
    metric="accuracy",
    gate=Gate({{"dropout": DROPOUT_OFF}}),
    dropouts=lambda values: tuple((f"place {{place}}", values["dropout"]) for place in range(PLACES)),
    fields=("tokens" if SEQUENCES else "inputs", "labels"),
    optimizer_state=2,
)
'''

OF_FRAMEWORK = {
    "pytorch": '''"""In PyTorch."""

import torch
from torch import nn
from torch.nn import functional as F


def build(values):
    return Model(values)


def loss(model, batch):
    inputs, labels = batch
    return F.cross_entropy(model(inputs), labels)


def optimizer(model, values, learning_rate):
    return {optimizer}


{model}
''',
    "jax": '''"""In JAX."""

import optax
from benchlib.workloads._flax import BatchNorm
from flax import nnx


def build(values):
    return Model(values, nnx.Rngs(0))


def loss(model, batch):
    inputs, labels = batch
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs), labels).mean()


def optimizer(values, learning_rate):
    return optax.sgd(learning_rate, momentum=0.9)


{model}
''',
    "mindspore": '''"""In MindSpore."""

from mindspore import nn, ops


def build(values):
    return Model(values)


def loss(model, batch):
    inputs, labels = batch
    return ops.cross_entropy(model(inputs), labels)


def optimizer(model, values, learning_rate):
    return nn.SGD(model.trainable_params(), learning_rate=learning_rate, momentum=0.9)


{model}
''',
}
MOMENTUM = "torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)"


def main() -> None:
    """Certify all, and say which are refused."""
    parser = argparse.ArgumentParser(description="Sound models that the equivalence gate may refuse.")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--modes", nargs="+", choices=("eager", "graph"), default=("eager", "graph"))
    parser.add_argument("--to", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    machine_lock.LOCK = arguments.to / "turn.lock"  # nothing is timed: nobody has to wait for it
    sound = [one for one in declared() if not arguments.only or one["name"] in arguments.only]
    lay(arguments.to / "plugin", sound)
    shutil.rmtree(arguments.to / "certificates", ignore_errors=True)
    lab = Lab(outputs=arguments.to, plugins=[arguments.to / "plugin"])
    absent = planting.absent()
    conditions = [
        Condition(workload=one["name"], framework=name, mode=mode, environment=environment, lane="tuned")
        for one in sound
        for name, environment in planting.ENVIRONMENTS.items()
        if name not in absent and (name == "pytorch" or name in one)
        for mode in arguments.modes
    ]
    certificates = lab.certify(conditions)
    rows = [_row(one, certificates[one.key]) for one in conditions]
    frame = pd.DataFrame(rows)
    frame.to_csv(arguments.to / "sound.csv", index=False)
    print(f"{(frame.verdict == SAME).sum()} of {len(frame)} sound models are called the same")
    known = {(one["name"], mode): check for one in sound for mode, check in one.get("refused", {}).items()}
    seen = {(row["workload"], row["mode"]): row["why"].partition(":")[0] for row in rows if row["verdict"] != SAME}
    sys.exit(seen != {name: check for name, check in known.items() if name[1] in arguments.modes})


def declared() -> list[dict[str, Any]]:
    """The sound models."""
    return yaml.safe_load(DECLARED.read_text(encoding="utf-8"))


def lay(folder: Path, sound: list[dict[str, Any]]) -> None:
    """Write the plug-in: a workload for each model, and the framework ``plain``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "frameworks").mkdir(parents=True)
    session = frameworks.file("pytorch").read_text(encoding="utf-8")
    renamed = session.replace('TITLE = "PyTorch"', 'TITLE = "plain PyTorch"')
    (folder / "frameworks" / "plain.py").write_text(renamed, encoding="utf-8")
    for one in sound:
        place = folder / "workloads" / one["name"]
        place.mkdir(parents=True)
        (place / "__init__.py").write_text("", encoding="utf-8")
        fill = {"optimizer": one.get("optimizer", MOMENTUM)}
        files = {name: OF_FRAMEWORK[name].format(model=one[name], **fill) for name in OF_FRAMEWORK if name in one}
        files["plain"] = OF_FRAMEWORK["pytorch"].format(model=one["plain"], **fill)
        files["pytorch"] = "\n\n".join(filter(None, (files["plain"], one.get("rewritten"))))
        for name, text in files.items():
            (place / f"{name}.py").write_text(text, encoding="utf-8")
        model = _module(place / "plain.py").build({"words": 20, "dropout": 0.5})
        described = {
            "name": one["name"],
            "what": one["what"],
            "dropout": one.get("dropout", 0),
            "sequences": one.get("data") == "digits_sequence",
            "weights": _weights(model),
        }
        (place / "workload.py").write_text(WORKLOAD.format(**described), encoding="utf-8")


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"plain_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _weights(model: Any) -> dict[str, tuple[tuple[Any, ...], bool]]:
    """The arguments of ``Weight`` for each array of a PyTorch model, and whether it is trained."""
    arrays = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {
        name: (_drawn(name, tuple(array.shape)), array.requires_grad)
        for name, array in arrays.items()
        if not name.endswith("num_batches_tracked")
    }


def _drawn(name: str, shape: tuple[int, ...]) -> tuple[Any, ...]:
    if len(shape) > 1 and 1 not in shape:
        return shape, "glorot_uniform", (shape[1], shape[0])
    return shape, "zeros" if name.endswith(("bias", "mean")) else "ones"


def _row(condition: Condition, certificate: Any) -> dict[str, str]:
    row = {
        "workload": condition.workload,
        "framework": condition.framework,
        "mode": condition.mode,
        "verdict": certificate.verdict,
        "why": certificate.why,
        "remarks": "; ".join(getattr(certificate, "remarks", ())),
    }
    print(" | ".join(row.values()), flush=True)
    return row


if __name__ == "__main__":
    main()
