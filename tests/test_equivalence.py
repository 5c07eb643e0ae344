"""The gate finds what differs, and lets rounding pass: a reference in fp32 is as far from the truth."""

from dataclasses import replace

import numpy as np
import pytest

from benchlib import workloads
from benchlib.cache import load, save
from benchlib.condition import Condition
from benchlib.equivalence import compare, gate
from benchlib.equivalence.certificate import Certificate
from benchlib.equivalence.compare import Results
from benchlib.equivalence.tolerances import FACTOR, MANY, SINGLE, TOLERANCES
from benchlib.errors import BenchlibError, Failure

CONDITION = Condition(workload="cnn", framework="mindspore")
REFERENCE = Condition(workload="cnn")
COMPARED = ["outputs", "evaluation outputs", "losses", "state:norm.running_mean"]
COMPARED += ["gradient:conv1.weight", "update:conv1.weight"]


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    one = {
        "outputs": random.normal(size=(16, 10)).astype(np.float32),
        "gradient:conv1.weight": random.normal(size=(50, 3, 3, 3)).astype(np.float32),
        "gradient:conv1.bias": (1e-9 * random.normal(size=50)).astype(np.float32),
        "losses": np.array([2.3, 2.2, 2.1]),
        "update:conv1.weight": random.normal(size=(50, 3, 3, 3)).astype(np.float32),
        "weight size:conv1.weight": np.array([1.0], dtype=np.float32),
        "state:norm.running_mean": random.normal(size=50).astype(np.float32),
        "evaluation outputs": random.normal(size=(16, 10)).astype(np.float32),
    }
    trials = {f"{trial}/{name}": array for trial in (0, 1, 2) for name, array in one.items()}
    weights = {step: random.normal(size=50).astype(np.float32) + step for step in (0, 1, 3)}
    probe = {f"probe/weights {step}:conv1.bias": array for step, array in weights.items()}
    return {**trials, **{f"again/{name}": array for name, array in one.items()}, **probe}


def scaled(arrays, name, factor, trials=(0, 1, 2, "again")):
    return {**arrays, **{f"{trial}/{name}": arrays[f"{trial}/{name}"] * factor for trial in trials}}


def verdict(found, truth, expected=None, condition=CONDITION):
    """Of ``found`` beside the truth, and the reference in fp32 where that is another."""
    results = Results(found, truth if expected is None else expected, truth)
    return compare.certify(condition, REFERENCE, results, {}, {})


def check_of(certificate, name):
    return next(check for check in certificate.checks if check.name == name)


def wrong_of(certificate):
    return [check.name for check in certificate.checks if not check.ok]


def test_rounding_passes(arrays):
    noisy = {name: (array * (1 + 1e-7)).astype(array.dtype) for name, array in arrays.items()}
    noisy = scaled(noisy, "gradient:conv1.bias", -1)  # rounding noise: negligible beside the weights' gradient
    certificate = verdict(noisy, arrays)
    assert certificate.same, [one for one in certificate.checks if not one.ok]
    assert {check.name for check in certificate.checks} == set(TOLERANCES) - {"predictions", "first loss"}


@pytest.mark.parametrize("trials", [(0, 1, 2, "again"), (1, 2), (1,)])
@pytest.mark.parametrize("name", COMPARED)
def test_a_difference_of_a_thousandth_anywhere_in_any_trial_is_found(arrays, name, trials):
    """Gradients and updates in two trials of three: in one it may be a kink."""
    certificate = verdict(scaled(arrays, name, 1.001, trials), arrays)
    if trials == (1,) and name in ("gradient:conv1.weight", "update:conv1.weight"):
        assert certificate.same
        return
    wrong = [check for check in certificate.checks if not check.ok]
    assert (certificate.verdict, [check.at.partition("/")[2] for check in wrong]) == ("different", [name])
    assert wrong[0].difference == pytest.approx(0.001, rel=0.01)


def test_a_first_trial_that_cannot_be_made_again_is_found(arrays):
    certificate = verdict(scaled(arrays, "losses", 1.001, ["again"]), arrays)
    assert [(one.name, one.at) for one in certificate.checks if not one.ok] == [("repetition", "again/losses")]


@pytest.mark.parametrize("name", COMPARED)
def test_a_condition_may_be_as_far_from_the_truth_as_the_reference_to_a_factor(arrays, name):
    def differs(ours, its):
        return wrong_of(verdict(scaled(arrays, name, 1 + ours), arrays, scaled(arrays, name, 1 + its)))

    assert differs(0.004, 0.0)
    assert not differs(0.004, 0.0011)
    assert differs(0.004, 0.0009), f"{FACTOR:.0f} times as far is too far"
    certificate = verdict(scaled(arrays, name, 1.004), arrays, scaled(arrays, name, 1.002))
    assert max(check.own for check in certificate.checks) == pytest.approx(0.002, rel=0.01), "it is shown"
    assert differs(np.nan, 0.0)
    assert differs(np.nan, np.nan), "nothing was compared"
    far, one = {**arrays, f"far/{name}": arrays[f"0/{name}"] * np.nan}, {f"far/{name}": arrays[f"0/{name}"]}
    assert not wrong_of(verdict(far, {**far, **one}, far)), "large weights may do that"


def test_a_trial_that_stands_alone_may_meet_a_kink_but_a_loss_there_may_not(arrays):
    arrays |= {f"batch/{name.partition('/')[2]}": array for name, array in arrays.items() if name.startswith("0/")}

    def wrong(name, factor, **changes):
        return wrong_of(verdict(scaled(arrays, name, factor, ["batch"]), arrays, condition=CONDITION.but(**changes)))

    assert [wrong("gradient:conv1.weight", 1 + one * SINGLE) for one in (0.9, 1.1)] == [[], ["gradients"]]
    assert (wrong("losses", 1 + 0.9 * MANY * TOLERANCES["losses"]), wrong("losses", 1.0001)) == ([], ["losses"])
    evaluated, deep = "evaluation outputs", {"workload": "googlenet", "hyperparameters": {}}
    assert (wrong(evaluated, 1.0015), wrong(evaluated, 1.0015, **deep)) == ([evaluated], []), "it is behind a step"


def test_a_kink_may_be_met_by_another_gradient_of_an_inference_model_than_the_references(arrays):
    """At 224 pixels: on a GPU one gradient was 4.8e-3 off, on a CPU another of PyTorch by 3.4e-2."""
    forward = {name: one for name, one in arrays.items() if "losses" not in name and "update" not in name}
    truth = {**forward, **{f"{trial}/gradient:other": np.array([1.0]) for trial in (0, 1, 2)}}
    condition = Condition(workload="resnet50_inference", framework="mindspore")
    near, far = (scaled(truth, "gradient:conv1.weight", one, [0, 1, "again"]) for one in (1.0048, 1.03))
    assert not wrong_of(verdict(near, truth, condition=condition)), "two trials may meet one; no step computes it"
    assert wrong_of(verdict(far, truth, condition=condition)) == ["gradients"], "it met none"
    met = {**truth, "0/gradient:other": np.array([1.034]), "1/gradient:other": np.array([1.034])}
    assert not wrong_of(verdict(far, truth, met, condition))


def test_a_deep_model_s_evaluation_counts_by_the_middle_trial_and_its_gradients_by_the_least_five_times(arrays):
    deep, conv = CONDITION.but(workload="googlenet", hyperparameters={}), "gradient:conv1.weight"
    passes = [("evaluation outputs", 1.001, [1]), (conv, 1.0006, [1, 2]), (conv, 1.0004, [0, 1, 2, "again"])]
    fails = [("evaluation outputs", 1.001, [1, 2]), (conv, 1.0006, [0, 1, 2, "again"])]
    for case in passes + fails:
        assert bool(wrong_of(verdict(scaled(arrays, *case), arrays, condition=deep))) == (case in fails)


def test_in_double_precision_nothing_is_left_to_rounding(arrays):
    exact = {name: array.astype(float) for name, array in arrays.items() if not name.startswith("probe/")}
    condition = CONDITION.but(framework="jax", precision="fp64")
    for name in COMPARED:
        assert verdict(scaled(exact, name, 1 + 1e-10), exact, condition=condition).same
        assert wrong_of(verdict(scaled(exact, name, 1 + 1e-8), exact, condition=condition))


def test_a_file_that_fails_in_double_precision_is_judged_in_fp32_and_the_certificate_names_that(arrays):
    condition = CONDITION.but(framework="tensorflow", precision="fp64")

    def failed(exception):
        failure = Failure("worker failed in 'check'", exception=exception)
        return Certificate(condition=condition, reference=REFERENCE, failure=failure, failed="condition", reason="so")

    own = verdict(arrays, arrays)
    judged = gate.judge([failed("TypeError")], own)
    assert (judged.same, ["TypeError" in name for name in judged.unexercised]) == (True, [True])
    assert gate.judge([failed("")], own).verdict == "not checked", "it crashed: nothing is known"
    other = verdict(scaled(arrays, "outputs", 1.01), arrays)
    assert gate.judge([failed("TypeError")], other).verdict == "different"
    assert gate.judge([other], own) == other


def test_a_user_s_model_whose_operators_round_in_double_precision_is_judged_in_fp32(arrays, monkeypatch):
    exact = {name: array.astype(float) for name, array in arrays.items() if not name.startswith("probe/")}
    own, usual = verdict(arrays, arrays), workloads.load("cnn")
    condition = CONDITION.but(framework="jax", precision="fp64")
    rounded, other = (verdict(scaled(exact, "outputs", 1 + by), exact, condition=condition) for by in (1e-7, 1e-5))
    assert gate.judge([rounded], own) == rounded, "of a workload that says nothing of it"
    ours = replace(usual, gate=replace(usual.gate, rounds=1e-6))
    monkeypatch.setattr(workloads, "load", lambda name: ours)
    judged = gate.judge([rounded], own)
    assert (judged.same, ["rounds some numbers" in name for name in judged.unexercised]) == (True, [True])
    assert gate.judge([other], own) == other
    updates = verdict(scaled(exact, "update:conv1.weight", 1 + 1e-8), exact, condition=condition)
    assert gate.judge([updates], own) == updates, "outputs agree, so nothing has rounded"


def test_where_masks_cannot_be_given_the_largest_batch_is_left_out_by_name(arrays):
    truth = {**arrays, "batch/first loss": np.array([2.0])}
    certificate = verdict({**arrays, "without masks/it drops by itself": np.zeros(0)}, truth)
    assert (certificate.verdict, certificate.without_masks) == ("same", "it drops by itself")
    assert verdict(arrays, truth).same, "a trial that was not made"
    assert wrong_of(verdict({**arrays, "batch/first loss": np.array([2.1])}, truth)) == ["first loss"]


def test_losses_that_a_framework_s_own_operator_cuts_are_not_compared_of_it_alone(arrays):
    """Paddle's softmax takes no exponent below -64."""
    far, cut = ({**arrays, "far/losses": np.array([most, 2.0])} for most in (90.0, 64.0))
    paddle = CONDITION.but(framework="paddle")
    assert verdict(cut, far, condition=paddle).same
    assert wrong_of(verdict(cut, far)) == ["losses"]
    assert wrong_of(verdict(scaled(cut, "losses", 1.01), far, condition=paddle)) == ["losses"]


def test_an_update_is_compared_with_itself_and_not_with_its_weight(arrays):
    """Of a weight of 1 what three steps of 1e-4 add is known to three roundings of it, and no better."""
    small, below = (scaled(arrays, "update:conv1.weight", one) for one in (1e-4, 1e-10))
    assert verdict(scaled(small, "update:conv1.weight", 1.02), small).verdict == "different"
    assert verdict(scaled(below, "update:conv1.weight", 2), below).same


def test_the_probe_is_compared_number_by_number_over_each_stretch(arrays):
    start, other = arrays["probe/weights 1:conv1.bias"], arrays["probe/weights 3:conv1.bias"].copy()
    other[7] = start[7] + (other[7] - start[7]) * 1.01
    certificate = verdict({**arrays, "probe/weights 3:conv1.bias": other}, arrays)
    wrong = [(one.name, one.at) for one in certificate.checks if not one.ok]
    assert wrong == [("optimizer", "probe/steps 2 to 3:conv1.bias")]
    assert check_of(certificate, "optimizer").difference == pytest.approx(0.01, rel=0.05)


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
    assert Certificate.model_validate_json(certificate.model_dump_json()) == certificate


def test_a_worker_that_failed_proves_nothing(arrays):
    certificate = verdict(Failure(sentence="it died"), arrays)
    assert (certificate.verdict, certificate.same) == ("not checked", False)
    assert "the condition failed: it died" in certificate.reason


def test_an_accelerator_may_sum_in_another_order_but_not_round_to_tf32(arrays):
    def on_gpu(factor):
        found = {name: array * factor for name, array in arrays.items()}
        return verdict(found, arrays, condition=REFERENCE.but(device="cuda")).verdict

    assert on_gpu(1 + 5e-5) == "same"
    assert on_gpu(1 + 2**-11) == "different"
    assert verdict({name: array * (1 + 5e-5) for name, array in arrays.items()}, arrays).verdict == "different"


def test_other_words_are_another_model(arrays):
    words = {f"{trial}/predictions": np.array([[4, 5, 3], [6, 3, 3]]) for trial in (0, 1)}
    others = {f"{trial}/predictions": np.array([[4, 5, 3], [7, 3, 3]]) for trial in (0, 1)}
    assert verdict({**arrays, **words}, {**arrays, **words}).same
    assert verdict({**arrays, **others}, {**arrays, **words}).verdict == "different"
    assert verdict({**arrays, **others}, {**arrays, **words}, {**arrays, **others}).same, "rounding decides there"


def test_trials_that_were_not_made_are_not_asked_for(arrays):
    made = {name: array for name, array in arrays.items() if not name.startswith(("1/", "2/"))}
    certificate = verdict(made, arrays)
    assert certificate.same
    assert certificate.trials == 1
    missing = {name: array for name, array in made.items() if "losses" not in name}
    assert verdict(missing, arrays).verdict == "different"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"difference": 0.00', '"difference": 0.000'),
        ('"tolerance": 0.0001', '"tolerance": 1.0'),
        ('"framework": "mindspore"', '"framework": "pytorch"'),
        ("0/outputs", "0/output"),
        (None, "{}"),
    ],
)
def test_a_certificate_that_was_edited_is_refused_by_name(arrays, old, new, tmp_path):
    certificate = verdict(scaled(arrays, "gradient:conv1.weight", 1.001), arrays).model_copy(update={"file": "c"})
    path = tmp_path / "c.json"
    save(path, certificate)
    assert load(Certificate, path) == certificate
    text = path.read_text()
    assert (old or "") in text
    path.write_text(text.replace(old, new, 1) if old else new)
    with pytest.raises(BenchlibError, match=rf"^{path}: .*delete it to measure again"):
        load(Certificate, path)


def test_no_stored_word_makes_a_verdict(arrays):
    certificate = verdict(scaled(arrays, "losses", 2), arrays)
    told = certificate.model_dump() | {"verdict": "same", "same": True}
    told["checks"] = [{**check, "ok": True} for check in told["checks"]]
    assert Certificate.model_validate(told).verdict == "different"


def test_two_certificates_can_be_compared_by_what_was_computed(arrays):
    digests = verdict(arrays, arrays).digests
    assert digests == verdict(arrays, arrays).reference_digests
    other = verdict(scaled(arrays, "losses", 1 + 1e-7, [1]), arrays).digests
    assert {name for name, one in other.items() if one != digests[name]} == {"1/losses"}


def of_dropout(**seen):
    """What the two dropouts of ``gcn`` do as they should, and its steps with them; but for what is ``seen``."""
    usual = {
        "places": [2, 2],
        "given": [20_000] * 2,
        "root mean square": [1.0, 2.0],
        "numbers": [40_000] * 2,
        "zeros": [20_000] * 2,
        "least scale": [2.0] * 2,
        "greatest scale": [2.0] * 2,
        "neighbours": [1.0] * 2,
        "repeats": [0] * 2,
        "twins": [0] * 2,
        "evaluation places": [0],
        "evaluation:0": [1.0],
        "evaluation again:0": [1.0],
        "step losses": [2.0, 2.1, 1.9],
        "moved 3": [0.03, 0.06, 0.03, 0.0003],
        "moved 8": [0.1, 0.2, 0.1, 0.001],
    }
    return {f"dropout/{name}": np.array(value, dtype=float) for name, value in (usual | seen).items()}


@pytest.mark.parametrize(
    ("quantity", "seen", "wrong"),
    [
        ("given", [20_000] * 2, []),
        ("given", [20_000, 2_000], ["dropout sizes"]),  # one mask for what the reference draws many for
        ("root mean square", [1.0, 2.02], []),
        ("root mean square", [1.0, 2.4], ["dropout inputs"]),  # of other numbers
        ("root mean square", [1.0, np.nan], ["dropout inputs"]),
        ("root mean square", [1.0, 1.0], ["dropout inputs"]),
        ("moved 8", [0.12, 0.18, 0.1, 0.0011], []),  # as other masks have it
        *[
            ("moved 8", moved, ["8 steps with dropout"])  # steps that do less while dropout is at work
            for moved in (
                [0.1, 0.2, 0.1, np.nan],
                [0.1, 0.2, 0.1, 0.0],
                [0.1, 0.2, 0.03, 0.001],
                [0.4, 0.8, 0.4, 0.004],
                [0.0] * 4,
            )
        ],
        ("moved 3", [0.02, 0.07, 0.03, 0.0009], []),
        *[
            # the norm of all weights together: 5.6 rates far with a momentum of 0.9, 3 without
            ("moved 3", [one * size for one in (0.03, 0.06, 0.03, 0.0003)], ["3 steps with dropout"])
            for size in (3 / 5.61, 5.61 / 3, np.nan)
        ],
        ("step losses", [2.0, 2.002, 2.0], []),
        ("step losses", [2.0, 2.0, 2.0], ["dropout in steps"]),  # a step may have been compiled in evaluation behaviour
        ("step losses", [2.0, 2.000002, 2.0], ["dropout in steps"]),  # which rounding does, too
    ],
)
def test_what_dropout_and_steps_with_it_do_otherwise_is_seen(arrays, quantity, seen, wrong):
    own, its = {**arrays, **of_dropout(**{quantity: seen})}, {**arrays, **of_dropout()}
    condition = Condition(workload="gcn", framework="mindspore")
    assert wrong_of(verdict(own, arrays, its, condition)) == wrong


def test_ones_that_are_dropped_to_make_a_mask_are_compared_where_masks_are_given(arrays):
    condition, batch = Condition(workload="gcn", framework="mindspore"), {"batch/first loss": np.array([2.0])}
    own, its = ({**arrays, **of_dropout(**{"root mean square": [1.0, one]})} for one in (1.0, 2.0))
    assert wrong_of(verdict(own, arrays, its, condition)) == ["dropout inputs"]
    assert verdict({**own, **batch}, {**arrays, **batch}, {**its, **batch}, condition).same


@pytest.mark.parametrize(
    ("quantity", "seen", "wrong", "alone"),
    [
        ("neighbours", [120.0, 1.0], [], ["dropout masks"]),
        ("neighbours", [60.0, 1.0], ["dropout masks"], ["dropout masks"]),
        ("neighbours", [1.0, 1.0], ["dropout masks"], []),
        ("zeros", [22_000, 20_000], [], ["dropout share"]),
        ("zeros", [25_000, 20_000], ["dropout share"], ["dropout share"]),
    ],
)
def test_channels_may_be_dropped_as_a_whole_where_the_reference_does(arrays, quantity, seen, wrong, alone):
    condition = Condition(workload="gcn", framework="mindspore")
    for neighbours, said in ((140.0, wrong), (1.0, alone)):
        of_both = {"neighbours": [neighbours, 1.0]}
        own = {**arrays, **of_dropout(**{**of_both, quantity: seen})}
        assert wrong_of(verdict(own, arrays, {**arrays, **of_dropout(**of_both)}, condition)) == said


def test_without_dropout_steps_in_a_row_go_as_far_weight_by_weight(arrays):
    def wrong(moved, dropout=0.0, truth=arrays):
        condition = Condition(workload="gcn", framework="mindspore", hyperparameters={"dropout": dropout})
        same = {"evaluation:0": [1.0], "evaluation again:0": [1.0]}
        seen = {"places": [0, 0], "evaluation places": [0], "moved 3": moved, "moved 8": moved, **same}
        own = {f"dropout/{name}": np.array(value, dtype=float) for name, value in seen.items()}
        its = {**own, **{f"dropout/moved {steps}": np.array([0.03, 0.06, 0.03, 0.01]) for steps in (3, 8)}}
        return wrong_of(verdict({**truth, **own}, truth, {**truth, **its}, condition))

    assert wrong([0.03, 0.06, 0.03, 0.0101]) == []
    assert wrong([0.03, 0.01, 0.03, 0.01], truth=scaled(arrays, "gradient:conv1.bias", 0.0)) == [], "by rounding"
    assert wrong([0.03, 0.06, 0.03, 0.011]) == ["3 steps in a row", "8 steps in a row"]


def test_a_training_is_compared_until_half_of_the_steps_after_which_rounding_parts_the_reference():
    def trained(start, far=9e-3):
        """As many losses, which part at a step by so much."""
        return np.where(np.arange(1, 51) < start, 2.0, 2.0 * (1 + far))

    def check(ours, its):
        losses = np.stack([trained(ours), trained(its), trained(51)])
        return compare.training_check(Condition(workload="cnn", framework="mxnet"), losses)

    assert not check(34, 51).ok, "the reference does not part"
    assert check(34, 40).ok
    assert check(20, 40).ok
    assert not check(19, 40).ok
    assert check(2, 3).ok
    assert not check(1, 1).ok, "what never agreed was never seen to be the same"
    assert check(1, 3).why == "step 1 differs by 9.0e-03, 1e-04 allowed"


def test_running_statistics_are_compared_by_how_they_change(arrays):
    """A variance of 1 that moves by a hundredth of what it is away, by a ten-thousandth of that too much."""
    name, size = "state:norm.running_mean", "weight size:norm.running_mean"
    small = {**scaled(arrays, name, 0.01), **{f"{trial}/{size}": np.array([1.0]) for trial in (0, 1, "again")}}
    assert verdict(scaled(small, name, 1 + 5e-5), small).same
    assert wrong_of(verdict(scaled(small, name, 1 + 3e-4), small)) == ["state"]


def test_a_gradient_that_is_0_in_truth_may_be_what_rounding_leaves_of_it(arrays):
    """As of a bias that the next layer cancels."""
    truth = scaled(arrays, "gradient:conv1.bias", 0.0)
    largest = max(np.abs(arrays[f"{trial}/gradient:conv1.weight"]).max() for trial in (0, 1, 2))

    def left(ours, its=0.0):
        names = [f"{trial}/gradient:conv1.bias" for trial in (0, 1, 2, "again")]
        found, expected = ({**truth, **dict.fromkeys(names, np.full(50, one * largest))} for one in (ours, its))
        return wrong_of(verdict(found, truth, expected))

    assert not left(1e-8)
    assert not left(4e-5), "rounding does that, in sums of equal numbers"
    assert not left(3e-4, 1e-4), "where the reference has as much, to a factor"
    assert left(1e-4) == ["gradients"]
    # Adam divides it by itself, and steps are as large in others
    for gradient, by, wrong in ((0.0, 1e-7, []), (0.0, 1e-3, ["updates"]), (0.5, 1e-7, ["updates"])):
        exact = {name: array.astype(float) for name, array in truth.items() if not name.startswith("probe/")}
        exact |= {f"{trial}/gradient:conv1.bias": np.full(50, gradient) for trial in (0, 1, 2, "again")}
        exact, moved = (
            {**exact, **{f"{one}/update:conv1.bias": np.full(50, size) for one in "012"}} for size in (0, by)
        )
        assert wrong_of(verdict(moved, exact, condition=CONDITION.but(framework="jax", precision="fp64"))) == wrong
