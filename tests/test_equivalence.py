"""The gate finds what differs, and lets rounding pass."""

import numpy as np
import pytest

from benchlib.analysis import equivalence
from benchlib.analysis.failure import Failure
from benchlib.condition import Condition

CONDITION = Condition(workload="cnn", framework="mindspore")
REFERENCE = Condition(workload="cnn")


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    one = {
        "outputs": random.normal(size=(16, 10)).astype(np.float32),
        "gradient:conv1.weight": random.normal(size=(50, 3, 3, 3)).astype(np.float32),
        "gradient:conv1.bias": (1e-9 * random.normal(size=50)).astype(np.float32),
        "losses": np.array([2.3, 2.2, 2.1]),
        "state:conv1.weight": random.normal(size=(50, 3, 3, 3)).astype(np.float32),
        "evaluation outputs": random.normal(size=(16, 10)).astype(np.float32),
    }
    return {f"{trial}/{name}": array for trial in (0, 1) for name, array in one.items()}


def scaled(arrays, name, factor, trials=(0, 1)):
    return {**arrays, **{f"{trial}/{name}": arrays[f"{trial}/{name}"] * factor for trial in trials}}


def verdict(found, expected):
    return equivalence.certify(CONDITION, REFERENCE, found, expected, {}, {})


def test_rounding_passes(arrays):
    noisy = {name: (array * (1 + 1e-7)).astype(array.dtype) for name, array in arrays.items()}
    # rounding noise: negligible beside the weights' gradient
    noisy = scaled(noisy, "gradient:conv1.bias", -1)
    certificate = verdict(noisy, arrays)
    assert certificate.same
    assert {check.name for check in certificate.checks} == set(equivalence.TOLERANCES) - {"predictions"}


@pytest.mark.parametrize(
    "name", ["outputs", "gradient:conv1.weight", "losses", "state:conv1.weight", "evaluation outputs"]
)
def test_a_difference_of_a_thousandth_anywhere_is_found(arrays, name):
    certificate = verdict(scaled(arrays, name, 1.001), arrays)
    assert certificate.verdict == "different"
    wrong = [check for check in certificate.checks if not check.ok]
    assert [check.at.partition("/")[2] for check in wrong] == [name]
    assert wrong[0].difference == pytest.approx(0.001, rel=0.01)


def test_a_kink_met_in_one_trial_is_no_other_model_but_other_outputs_are(arrays):
    kink = verdict(scaled(arrays, "gradient:conv1.weight", 1.004, trials=[1]), arrays)
    assert kink.same
    gradients = next(check for check in kink.checks if check.name == "gradients")
    assert gradients.difference == 0
    assert gradients.worst == pytest.approx(0.004, rel=0.01), "it is shown all the same"
    assert verdict(scaled(arrays, "outputs", 1.004, trials=[1]), arrays).verdict == "different"


@pytest.mark.parametrize(
    "broken",
    [
        {"1/outputs": np.full((16, 10), np.nan, np.float32)},
        {"1/outputs": np.zeros((16, 9), np.float32)},
        {"1/gradient:another": np.zeros(3, np.float32)},
    ],
)
def test_what_is_missing_misshapen_or_not_finite_differs(arrays, broken):
    certificate = verdict({**arrays, **broken}, arrays)
    assert certificate.verdict == "different"
    assert equivalence.Certificate.model_validate_json(certificate.model_dump_json()) == certificate


def test_a_worker_that_failed_proves_nothing(arrays):
    certificate = verdict(Failure(sentence="it died"), arrays)
    assert certificate.verdict == "not checked"
    assert not certificate.same
    assert "the condition failed: it died" in certificate.reason


def test_an_accelerator_may_sum_in_another_order_but_not_round_to_tf32(arrays):
    def on_gpu(factor):
        found = {name: array * factor for name, array in arrays.items()}
        return equivalence.certify(REFERENCE.but(device="cuda"), REFERENCE, found, arrays, {}, {}).verdict

    assert on_gpu(1 + 5e-5) == "same"
    assert on_gpu(1 + 2**-11) == "different"
    assert verdict({name: array * (1 + 5e-5) for name, array in arrays.items()}, arrays).verdict == "different"


def test_other_words_are_another_model(arrays):
    words = {f"{trial}/predictions": np.array([[4, 5, 3], [6, 3, 3]]) for trial in (0, 1)}
    others = {f"{trial}/predictions": np.array([[4, 5, 3], [7, 3, 3]]) for trial in (0, 1)}
    assert verdict({**arrays, **words}, {**arrays, **words}).same
    assert verdict({**arrays, **others}, {**arrays, **words}).verdict == "different"
    assert verdict({**arrays, **others, "1/predictions": words["1/predictions"]}, {**arrays, **words}).same, "a tie"


def test_trials_that_were_not_made_are_not_asked_for(arrays):
    made = {name: array for name, array in arrays.items() if name.startswith("0/")}
    certificate = verdict(made, arrays)
    assert certificate.same
    assert certificate.trials == 1
    missing = {name: array for name, array in made.items() if "losses" not in name}
    assert verdict(missing, arrays).verdict == "different"
