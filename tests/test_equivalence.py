"""The gate finds what differs, and lets rounding pass."""

import numpy as np
import pytest

from benchlib.cache import load, save
from benchlib.condition import Condition
from benchlib.equivalence import compare
from benchlib.equivalence.certificate import Certificate
from benchlib.equivalence.compare import Own
from benchlib.equivalence.tolerances import TOLERANCES
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


def verdict(found, expected, own=None):
    others = {name: Own(one, "moved by 1") for name, one in (own or {}).items()}
    return compare.certify(CONDITION, REFERENCE, found, expected, {}, {}, others)


def check_of(certificate, name):
    return next(check for check in certificate.checks if check.name == name)


def wrong_of(certificate):
    return [check.name for check in certificate.checks if not check.ok]


def test_rounding_passes(arrays):
    noisy = {name: (array * (1 + 1e-7)).astype(array.dtype) for name, array in arrays.items()}
    # rounding noise: negligible beside the weights' gradient
    noisy = scaled(noisy, "gradient:conv1.bias", -1)
    certificate = verdict(noisy, arrays)
    assert certificate.same, [one for one in certificate.checks if not one.ok]
    assert {check.name for check in certificate.checks} == set(TOLERANCES) - {"predictions", "first loss"}


@pytest.mark.parametrize("trials", [(0, 1, 2, "again"), (1,)])
@pytest.mark.parametrize("name", COMPARED)
def test_a_difference_of_a_thousandth_anywhere_in_any_trial_is_found(arrays, name, trials):
    certificate = verdict(scaled(arrays, name, 1.001, trials), arrays)
    assert certificate.verdict == "different"
    wrong = [check for check in certificate.checks if not check.ok]
    assert [check.at.partition("/")[2] for check in wrong] == [name]
    assert wrong[0].difference == pytest.approx(0.001, rel=0.01)


def test_a_first_trial_that_cannot_be_made_again_is_found(arrays):
    certificate = verdict(scaled(arrays, "losses", 1.001, ["again"]), arrays)
    assert [(one.name, one.at) for one in certificate.checks if not one.ok] == [("repetition", "again/losses")]


def test_a_difference_is_forgiven_where_the_reference_differs_from_itself_by_as_much(arrays):
    kink = scaled(arrays, "gradient:conv1.weight", 1.004, trials=[1])
    at = "1/gradient:conv1.weight"
    assert verdict(kink, arrays).verdict == "different"
    assert verdict(kink, arrays, {at: 0.0019}).verdict == "different", "not by as much"
    assert verdict(kink, arrays, {at: 0.0081}).verdict == "different", "but by more, which has another reason"
    assert verdict(kink, arrays, {"0/gradient:conv1.weight": 0.1}).verdict == "different", "not there"
    certificate = verdict(kink, arrays, {at: 0.003})
    assert certificate.same
    check = check_of(certificate, "gradients")
    assert check.difference == 0
    assert check.worst == pytest.approx(0.004, rel=0.01), "it is shown all the same"
    assert [(one.at, one.own, one.by) for one in check.forgiven] == [(at, 0.003, "moved by 1")]


def test_what_is_forgiven_in_every_trial_was_never_seen_to_agree(arrays):
    for trials in ([0, 1, 2], [1, 2]):  # the first takes fewer steps
        everywhere = scaled(arrays, "gradient:conv1.weight", 1.004, trials=trials)
        own = {f"{trial}/gradient:conv1.weight": 0.004 for trial in trials}
        certificate = verdict(everywhere, arrays, own)
        assert certificate.verdict == "different"
        check = check_of(certificate, "gradients")
        assert check.unseen == ["gradient:conv1.weight"]
        assert "never seen to agree" in check.why
    other = scaled(arrays, "gradient:conv1.weight", 1.004, trials=[0, 1, "again"])
    assert verdict(other, arrays, {f"{trial}/gradient:conv1.weight": 0.004 for trial in (0, 1)}).same


def test_the_probe_is_no_trial_in_which_the_two_were_seen_to_agree(arrays):
    probed = {**arrays, "probe/evaluation outputs": arrays["0/evaluation outputs"]}
    everywhere = scaled(probed, "evaluation outputs", 1.004, trials=[0, 1, 2])
    certificate = verdict(everywhere, probed, {f"{trial}/evaluation outputs": 0.004 for trial in (0, 1, 2)})
    assert check_of(certificate, "evaluation outputs").unseen == ["evaluation outputs"]


@pytest.mark.parametrize("name", ["outputs", "first loss"])
def test_outputs_and_the_first_loss_are_never_forgiven(arrays, name):
    arrays = {**arrays, **{f"{trial}/first loss": np.array([2.3]) for trial in (0, 1, 2, "again")}}
    other = scaled(arrays, name, 1.004, trials=[1])
    assert verdict(other, arrays, {f"1/{name}": 0.004}).verdict == "different"


def test_what_is_nearest_to_the_difference_stands_as_its_evidence():
    differences = {"gradients": {"0/gradient:a": 0.01, "0/gradient:b": 0.0}}
    own = {}
    for number, size in enumerate((1e-6, 0.3, 0.011, 0.02), 1):
        found = {name: Own(size, f"draw {number}") for name in ("0/gradient:a", "0/gradient:b")}
        own = compare.nearest_differences(differences, own, found)
    assert own == {"0/gradient:a": Own(0.011, "draw 3")}
    zero = {"0/gradient:a": Own(1.0, "both are 0 but for rounding", 2.0)}
    assert compare.nearest_differences(differences, zero, own) == zero


def test_only_trials_in_which_something_differs_are_made_again(arrays):
    def beyond(computed, own):
        differences = compare.differences(computed, arrays, TOLERANCES)
        return compare.to_explain(differences, TOLERANCES, own)

    assert beyond(arrays, {}) == set()
    kink = scaled(arrays, "gradient:conv1.weight", 1.004, trials=[1])
    assert beyond(kink, {}) == {1}
    assert beyond(kink, {"1/gradient:conv1.weight": Own(0.005, "its lane tuned")}) == set()
    assert beyond(scaled(arrays, "losses", 2, ["again"]), {}) == set(), "the same process has to give the same"
    assert beyond(scaled(kink, "outputs", 2), {}) == set(), "nothing can explain the outputs"


def test_an_update_is_compared_with_itself_and_not_with_its_weight(arrays):
    """Of a weight of 1 what three steps of 1e-4 add is known to three roundings of it, and no better."""
    small = scaled(arrays, "update:conv1.weight", 1e-4)
    assert verdict(scaled(small, "update:conv1.weight", 1.02), small).verdict == "different"
    below = scaled(arrays, "update:conv1.weight", 1e-10)
    assert verdict(scaled(below, "update:conv1.weight", 2), below).same


def test_the_probe_is_compared_number_by_number_over_each_stretch(arrays):
    other = arrays["probe/weights 3:conv1.bias"].copy()
    start = arrays["probe/weights 1:conv1.bias"]
    other[7] = start[7] + (other[7] - start[7]) * 1.01
    certificate = verdict({**arrays, "probe/weights 3:conv1.bias": other}, arrays)
    assert [(one.name, one.at) for one in certificate.checks if not one.ok] == [
        ("optimizer", "probe/steps 2 to 3:conv1.bias")
    ]
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
    assert certificate.verdict == "not checked"
    assert not certificate.same
    assert "the condition failed: it died" in certificate.reason


def test_an_accelerator_may_sum_in_another_order_but_not_round_to_tf32(arrays):
    def on_gpu(factor):
        found = {name: array * factor for name, array in arrays.items()}
        return compare.certify(REFERENCE.but(device="cuda"), REFERENCE, found, arrays, {}, {}).verdict

    assert on_gpu(1 + 5e-5) == "same"
    assert on_gpu(1 + 2**-11) == "different"
    assert verdict({name: array * (1 + 5e-5) for name, array in arrays.items()}, arrays).verdict == "different"


def test_other_words_are_another_model(arrays):
    words = {f"{trial}/predictions": np.array([[4, 5, 3], [6, 3, 3]]) for trial in (0, 1)}
    others = {f"{trial}/predictions": np.array([[4, 5, 3], [7, 3, 3]]) for trial in (0, 1)}
    assert verdict({**arrays, **words}, {**arrays, **words}).same
    assert verdict({**arrays, **others}, {**arrays, **words}).verdict == "different"
    tie = {**arrays, **others, "1/predictions": words["1/predictions"]}
    assert verdict(tie, {**arrays, **words}).verdict == "different"
    assert verdict(tie, {**arrays, **words}, {"0/predictions": 0.2}).same, "the reference's own words change, too"


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
    assert wrong_of(compare.certify(condition, REFERENCE, own, its, {}, {})) == wrong


def test_without_dropout_steps_in_a_row_go_as_far_weight_by_weight(arrays):
    def wrong(moved, dropout=0.0):
        condition = Condition(workload="gcn", framework="mindspore", hyperparameters={"dropout": dropout})
        same = {"evaluation:0": [1.0], "evaluation again:0": [1.0]}
        seen = {"places": [0, 0], "evaluation places": [0], "moved 3": moved, "moved 8": moved, **same}
        own = {f"dropout/{name}": np.array(value, dtype=float) for name, value in seen.items()}
        its = {**own, **{f"dropout/moved {steps}": np.array([0.03, 0.06, 0.03, 0.01]) for steps in (3, 8)}}
        return wrong_of(compare.certify(condition, REFERENCE, {**arrays, **own}, {**arrays, **its}, {}, {}))

    assert wrong([0.03, 0.06, 0.03, 0.0101]) == []
    assert wrong([0.03, 0.06, 0.03, 0.011]) == ["3 steps in a row", "8 steps in a row"]


def test_a_training_that_parts_as_the_reference_does_from_itself_is_forgiven_with_the_evidence():
    def trained(start, far):
        """As many losses, which part at a step by so much."""
        return np.where(np.arange(1, 51) < start, 2.0, 2.0 * (1 + far))

    losses, condition = np.stack([trained(34, 9e-3), trained(51, 0)]), Condition(workload="cnn", framework="mxnet")

    def check(**moved):
        return compare.training_check(condition, losses, moved)

    assert not check().ok
    assert not check(later=trained(51, 0)).ok, "the reference does not part from itself"
    assert not check(nearer=trained(34, 1e-3), farther=trained(34, 0.1)).ok
    assert not check(sooner=trained(16, 9e-3)).ok
    forgiven = check(later=trained(51, 0), chance=trained(30, 8e-3))
    assert forgiven.ok
    (one,) = forgiven.forgiven
    assert (one.at, one.by) == ("steps 34 to 50", "chance, from step 30 on")
    assert one.difference == pytest.approx(9e-3)
    losses[0, 40] = np.nan
    assert not check(chance=trained(30, 8e-3)).ok, "what is no number is explained by nothing"
    for start in (1, 2, 3):
        both = np.stack([trained(start, 9e-3), trained(51, 0)])
        found = compare.training_check(condition, both, {"chance": trained(start, 9e-3)})
        assert found.ok == (start > 1), "what never agreed was never seen to be the same"
        assert found.why == ("" if start > 1 else "steps 1 to 50 differs by 9.0e-03, 1e-04 allowed")


def test_running_statistics_are_compared_by_how_they_change(arrays):
    """A variance of 1 that moves by a hundredth of what it is away, by a ten-thousandth of that too much."""
    name, size = "state:norm.running_mean", "weight size:norm.running_mean"
    small = {**scaled(arrays, name, 0.01), **{f"{trial}/{size}": np.array([1.0]) for trial in (0, 1, "again")}}
    assert verdict(scaled(small, name, 1 + 5e-5), small).same
    assert wrong_of(verdict(scaled(small, name, 1 + 3e-4), small)) == ["state"]


def zero_trials(random, bias_left, rounding=1e-9):
    """A trial in which the gradient of ``conv1.bias`` is ``bias_left`` and rounding, and five of moved weights."""

    def made():
        noise = {name: rounding * random.normal(size=50) for name in ("0/gradient:conv1.bias", "0/update:conv1.bias")}
        return {"0/gradient:dense": np.ones(3), **{name: one + bias_left for name, one in noise.items()}}

    arrays = made()
    return arrays, compare.rounding(arrays, [made() for _ in range(5)])


@pytest.mark.parametrize(
    ("ours", "its", "counted"),
    [
        ((0.0, 3e-6), (0.0, 1e-6), True),  # rounding beside rounding, of a framework that sums one by one
        ((0.0, 0.0), (0.0, 1e-6), True),  # left out by whoever knows that it is 0
        ((0.0, 1e-6), (0.0, 0.0), True),
        ((0.0, 0.0), (5e-4, 1e-9), False),  # lost
        ((5e-4, 1e-9), (0.0, 1e-6), False),  # not 0
        ((1e-2, 1e-2), (1e-2, 1e-2), False),  # not small beside the others, whatever moves it
    ],
)
def test_a_gradient_that_rounding_leaves_counts_as_0_in_both_or_not_at_all(ours, its, counted):
    random = np.random.default_rng(0)
    (found, our_rounding), (expected, its_rounding) = (zero_trials(random, *one) for one in (ours, its))
    differences = compare.differences(found, expected, TOLERANCES)
    assert differences["gradients"]["0/gradient:conv1.bias"] > TOLERANCES["gradients"]
    own = compare.zeros(found, expected, (our_rounding, its_rounding), differences)
    assert ("0/gradient:conv1.bias" in own) == counted
    checks = compare.compare(differences, TOLERANCES, own)
    assert [check.ok for check in checks] == [counted] * 2, [check.why for check in checks]


def test_a_gradient_of_which_a_kink_moves_some_draws_does_not_count_as_0():
    arrays = {"0/gradient:dense": np.ones(3), "0/gradient:bias": np.full(3, 5e-4)}
    moved = [{**arrays, "0/gradient:bias": arrays["0/gradient:bias"] * by} for by in (1.5, 1 + 1e-7, 0.5, 1, 1)]
    lost = {**arrays, "0/gradient:bias": np.zeros(3)}
    differences = compare.differences(lost, arrays, TOLERANCES)
    roundings = compare.rounding(lost, [lost]), compare.rounding(arrays, moved)
    assert not compare.zeros(lost, arrays, roundings, differences)
