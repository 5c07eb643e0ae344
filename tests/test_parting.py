"""Where two models part: what a certificate says beyond its check, and when it adds nothing."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fixed_lab import FixedLab

from benchlib import environments
from benchlib.condition import Condition
from benchlib.equivalence import parting
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.equivalence.compare import Results
from benchlib.provenance import fingerprint
from benchlib.runner import recording
from benchlib.worker import files

CNN = Condition(workload="cnn", hyperparameters={"image_size": 8})


def test_the_layer_behind_which_a_model_is_other_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    monkeypatch.setattr(environments, "root", lambda: tmp_path)
    monkeypatch.setattr(recording, "require_hashed", lambda worker, known: None)
    (tmp_path / ".environments").mkdir()
    text = (fingerprint.PACKAGE / "workloads/cnn/pytorch.py").read_text(encoding="utf-8")
    bed = importlib.import_module("planting").Bed(tmp_path / "bed", "bed", sys.executable)
    bed.plant(
        "workloads/cnn/pytorch.py", text.replace("self.conv2(self.relu(self.conv1(x)))", "self.conv2(self.conv1(x))")
    )
    (certificate,) = FixedLab(outputs=tmp_path / "outputs").certify([CNN.but(environment="bed")]).values()
    assert "first apart between conv1 and conv2, through relu (9." in certificate.why
    assert certificate.why.endswith("perhaps no activation in place of ReLU")


X, Y = np.random.default_rng(0).standard_normal((2, 64, 32)).astype(np.float32)
GELU, TANH = (parting.ACTIVATIONS[name](X) for name in ("GELU", "GELU by tanh"))
OUT, IN, BIAS = "output of dense1/1", "input of dense2/1", "gradient:dense2.bias"


@pytest.mark.parametrize(
    ("wrong", "name", "ours", "its", "said"),
    [
        ("outputs", IN, TANH, GELU, "between dense1 and dense2 (2.0e-04); perhaps GELU by tanh in place of GELU"),
        ("outputs", OUT, X.astype(np.float16), X, "at the output of dense1 (2.1e-04); perhaps half precision"),
        ("outputs", IN, X, X, "in eager mode all layers and the loss agree, so what graph mode compiles differs"),
        ("outputs", IN, X[1:], None, "only the condition calls dense2"),
        ("outputs", None, X, X, "1e-04 allowed"),
        ("gradients", BIAS, 3 * X, X, "nearest to the loss at dense2.bias; every gradient is 3 times the reference's"),
        ("updates", "update:bias", X, X, "the first step agrees: perhaps momentum"),
        ("updates", "update:bias", Y + 0.1 * X, Y, "perhaps weight decay"),
        ("state", "state:bias", 0.1 * (Y * 16 / 15 - X), 0.1 * (Y - X), "perhaps unbiased, n = 16"),
    ],
)
def test_a_layer_or_a_part_of_a_step_is_named(monkeypatch, wrong, name, ours, its, said):
    both = [{name: one} if one is not None else {} for one in (ours, its)]  # of workers, one of which failed: no name
    layers = [{OUT: X, **one} if " of " in str(name) else {OUT: X} for one in both] if name else None
    monkeypatch.setattr(parting, "_layers", lambda *_: layers)
    monkeypatch.setattr(files, "arrays", lambda folder: {"bias": X})
    computed, expected = ({f"0/{name}": array for name, array in one.items()} for one in both)
    job = SimpleNamespace(condition=CNN, weights="")
    gated = SimpleNamespace(condition=CNN.but(mode="graph"), job=job, results=Results(computed, {}, expected))
    checks = [Check(name=wrong, difference=1, worst=1, at="0/it", tolerance=1e-4)]
    certificate = Certificate(condition=gated.condition, reference=CNN, checks=checks)
    assert said in parting.with_parting(certificate, gated, 1).why


def test_an_activation_that_one_has_within_a_layer_is_no_difference():
    gated = SimpleNamespace(condition=CNN, job=SimpleNamespace(condition=CNN), results=Results({}, {}, {}))
    active, last = np.maximum(X, 0), "output of dense2/1"
    for found, expected, said in (
        ({OUT: active, IN: active, last: Y}, {OUT: X, IN: active, last: X}, "at the output of dense2"),
        ({OUT: Y, IN: Y}, {OUT: X, IN: X}, "at the output of dense1"),
        ({IN: Y, last: X, "loss/1": Y}, {IN: X, last: X, "loss/1": X}, "between dense2 and the loss"),
        ({OUT: X, IN: Y}, {OUT: X, "through pool/1": X[:0], IN: X}, "between dense1 and dense2, through pool"),
    ):
        assert parting._compare_layers(gated, found, expected, "0", True)[0].startswith(f"first apart {said} ")
