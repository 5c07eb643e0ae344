"""The gate on the real frameworks: equal models pass it, and a model that was made wrong on purpose is caught."""

import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from conftest import DOUBLES
from fixed_lab import FixedLab
from studies import planned

from benchlib import env_vars, frameworks, plugins, workloads
from benchlib.condition import Condition
from benchlib.data.orders import EPOCHS
from benchlib.equivalence import compare, gate, samples, trials
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.equivalence.tolerances import DROPOUT_TOLERANCES, TOLERANCES, TRAINING
from benchlib.errors import Failure
from benchlib.frameworks import _work
from benchlib.lab import Measures
from benchlib.paper import trace
from benchlib.provenance import fingerprint, knobs
from benchlib.runner import recording, roofline
from benchlib.runner.jobs import prepare_job
from benchlib.worker import files
from benchlib.worker.batches import Batches
from benchlib.workloads.bert import workload as bert
from benchlib.workloads.seq2seq import workload as seq2seq

ROOT = Path(__file__).resolve().parent.parent
SMALL = {
    "batchnorm2d": {"channels": 4, "image_size": 8},
    "conv2d": {"in_channels": 3, "out_channels": 4, "image_size": 8},
}


def in_mindspore(workload):
    return Condition(
        workload=workload, framework="mindspore", lane="tuned", batch_size=4, hyperparameters=SMALL[workload]
    )


@pytest.fixture
def lab(tmp_path):
    return FixedLab(outputs=tmp_path / "outputs", patience_s=120)


@pytest.fixture
def altered(tmp_path, monkeypatch):
    """Has workers run a copy of benchlib with a text in one of its files replaced, which is ``refused`` or not."""

    def alter(file, old, new, refused=False):
        copy = tmp_path / "copy" / "benchlib"
        shutil.copytree(fingerprint.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        text = (copy / file).read_text(encoding="utf-8")
        assert old in text
        (copy / file).write_text(text.replace(old, new), encoding="utf-8")
        monkeypatch.setattr(plugins, "OWN", copy)
        if not refused:
            monkeypatch.setattr(recording, "require_hashed", lambda worker, known: None)

    return alter


def wrong_checks(certificate):
    return {check.name for check in certificate.checks if not check.ok}


def test_equal_operators_pass(lab):
    conditions = [in_mindspore("batchnorm2d"), in_mindspore("conv2d")]
    certificates = lab.certify(conditions)
    assert [certificates[c.key].verdict for c in conditions] == ["same", "same"]
    assert all(check.difference > 0 for check in certificates[conditions[1].key].checks if check.name == "outputs"), (
        "two frameworks never agree to the last bit: something was compared with itself"
    )


@pytest.fixture
def gating(tmp_path, monkeypatch):
    """Runs the gate with something else for what a process of it computes of a group, once references may be there."""

    def run(computed, conditions=None):
        monkeypatch.setattr(gate, "_compute_group", lambda group, *_: computed(group))
        sizes = dict.fromkeys(conditions or [in_mindspore("conv2d")], 4)
        return [one for one, *_ in gate.run(sizes, tmp_path, 1)]

    return run


def every(group):
    return ((one, {}) for one in iter(group.take, None))


def test_conditions_share_a_process_only_with_the_same_knobs(gating):
    """The tuned lane has a knob for convolutions alone: without it MindSpore's take 20 times as long."""
    processes = []

    def computed(group):
        processes.append([one for one, _ in every(group)])
        yield from ((one, {}) for one in processes[-1])

    conditions = [in_mindspore("batchnorm2d"), in_mindspore("conv2d")]
    made = gating(computed, conditions)
    assert sorted(made, key=conditions.index) == conditions, "each once"
    assert {one for together in processes for one in together} >= set(conditions)
    assert all(knobs.find(one) == knobs.find(together[0]) for together in processes for one in together)


@pytest.mark.parametrize(("device", "most"), [("cpu", 2), ("npu", 1)])
def test_two_processes_are_at_work_at_a_time_and_one_on_an_accelerator(gating, device, most):
    there, seen = [], []

    def computed(group):
        there.append(group.first.device)
        time.sleep(0.2)
        seen.append(list(there))
        there.remove(group.first.device)
        yield from every(group)

    gating(computed, [in_mindspore("conv2d").but(device=device, framework=one) for one in ("mindspore", "pytorch")])
    assert max(map(len, seen)) == 2, "the reference and the truth are of the CPU"
    assert max(some.count(device) for some in seen) == most


def test_a_second_process_takes_a_part_of_what_the_last_one_would_do(gating):
    taken, both = [], threading.Barrier(2)

    def computed(group):
        mine = []
        taken.append(mine)
        for condition, found in every(group):
            mine.append(condition)
            if condition.framework == "mindspore" and len(mine) == 1:
                both.wait(10)
            yield condition, found

    conditions = [in_mindspore("batchnorm2d").but(batch_size=size) for size in (1, 2, 3, 4)]
    assert sorted(gating(computed, conditions), key=conditions.index) == conditions, "each once"
    of_mindspore = [mine for mine in taken if mine and mine[0].framework == "mindspore"]
    assert len(of_mindspore) == 2
    assert sum(map(len, of_mindspore)) == len(conditions)


def test_each_of_two_processes_has_its_half_of_the_cores(gating):
    cores, bound, both = os.sched_getaffinity(0), [], threading.Barrier(2)

    def computed(group):
        bound.append(os.sched_getaffinity(0))
        if group.first.lane == "default":  # the reference, and the truth
            both.wait(10)
        yield from every(group)

    gating(computed, [in_mindspore("conv2d"), in_mindspore("conv2d").but(framework="pytorch")])
    bound = bound[:2]
    assert set.union(*bound) == cores
    assert not set.intersection(*bound) or len(cores) == 1
    assert os.sched_getaffinity(0) == cores


def test_data_parallel_groups_take_turns(gating):
    """Bound to the same cores, they would wait for each other."""
    at_work, most = [], []

    def computed(group):
        if group.first.world_size > 1:
            at_work.append(group)
            time.sleep(0.2)
            most.append(len(at_work))
            at_work.clear()
        yield from every(group)

    of_two = Condition(workload="cnn", batch_size=4, threads=1, world_size=2, lane="tuned")
    gating(computed, [of_two, of_two.but(lane="default")])
    assert most == [1, 1]


def test_the_quick_notebook_is_the_gate_of_every_workload():
    """Its certificates are made by ``make report``, and .ci/run asks that all say "same"."""
    every = planned("equivalence").every
    several = {name for name in workloads.names() if len(workloads.load(name).frameworks()) > 1}
    comparable = several - {"copy"}  # a measure of the machine, whose given gradient is not of its output's shape
    checked = {(one.workload, one.framework) for one in every}
    assert {(name, "mindspore") for name in comparable} == checked


def planted(name):
    return Condition(workload="toy_planted", framework="toy_planted", hyperparameters={"plant": name})


@pytest.fixture(scope="module")
def of_planted(tmp_path_factory):
    """The certificates of a model in which something is other, by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(env_vars.WORKER_PATH, str(DOUBLES))
        for package in (frameworks, workloads):
            own = str(DOUBLES / package.__name__.rpartition(".")[2])
            patch.setattr(package, "__path__", [*package.__path__, own])
        conditions = {name: planted(name) for name in workloads.load("toy_planted").hyperparameters["plant"].choices}
        certificates = FixedLab(outputs=tmp_path_factory.mktemp("lab")).certify(conditions.values())
        yield {name: certificates[one.key] for name, one in conditions.items()}


def test_the_same_model_is_the_same(of_planted):
    certificate = of_planted[""]
    assert certificate.same, certificate.checks
    assert certificate.trials == trials.TRIALS
    assert {one.name for one in certificate.checks} == {
        *set(TOLERANCES) - {"state"},
        *set(DROPOUT_TOLERANCES) - {"3 steps in a row", "8 steps in a row"},
        "work",
    }
    assert certificate.multiply_adds == certificate.reference_multiply_adds == 5760
    assert certificate.reference_knobs == certificate.knobs != {}


@pytest.mark.parametrize(
    ("plant", "shown", "least"),
    [
        ("class 7 ignored", "gradients", 0.5),
        ("class 7 twice", "gradients", 0.5),
        ("state kept", "repetition", 0.1),
        ("rate after 100 steps", "optimizer", 0.5),
        ("rate of cosine", "optimizer", 0.01),
        ("decay of half", "optimizer", 0.4),
        ("bias exempt from decay", "optimizer", 0.9),
        ("momentum of 0.89", "optimizer", 0.05),
        ("nesterov", "optimizer", 0.5),
        ("the first 16 samples", "gradients", 0.1),
        ("outputs cut at 10", "outputs", 0.2),
        ("no mask on the way back", "gradients", 0.1),
        ("two masks for ever", "dropout repeats", 1),
        ("dropout in evaluation", "evaluation repeats", 0.1),
        ("dropout in evaluation", "evaluation outputs", 0.1),
        ("dropout in evaluation", "dropout places", 1),
        ("dropout of the outputs", "dropout places", 1),
        ("no dropout", "dropout places", 1),
        ("another dropout", "dropout share", 10),
        ("dropout of 1 - p", "dropout share", 50),
        ("dropout not scaled", "dropout scale", 0.2),
        ("the same dropped", "dropout repeats", 1),
        ("the same dropped", "dropout in steps", np.inf),
        ("no dropout in steps", "dropout in steps", np.inf),
        ("dropout of other numbers", "dropout inputs", 0.49),
        ("no steps with dropout", "8 steps with dropout", 100),
        ("three steps with dropout", "8 steps with dropout", 1.5),
        ("momentum lost in steps with dropout", "3 steps with dropout", 0.51),
        ("whole rows dropped", "dropout masks", 20),
    ],
)
def test_what_is_planted_is_seen_at_full_size(of_planted, plant, shown, least):
    certificate = of_planted[plant]
    assert certificate.verdict == "different", certificate.reason
    assert shown in wrong_checks(certificate)
    assert next(one for one in certificate.checks if one.name == shown).difference >= least


def test_samples_are_chosen_for_what_they_show(of_planted):
    exercised = of_planted[""].exercised
    assert {f"labels {number}" for number in range(10)} < exercised.keys()
    assert [name for name, met in exercised.items() if not met] == ["an image of nothing"]
    assert exercised["a rare image"], "which is one of 1,437"
    assert exercised["a white image"], "which had to be made"


def test_of_small_sizes_samples_are_cut_so_that_there_is_padding(tmp_path):
    values = {"lstm": {"length": 8}, "gru": {"length": 8}, "bert": {"length": 64}, "seq2seq": {"length": 6}}
    for workload, sizes in values.items():
        job = samples.prepare(gate.adapt(Condition(workload=workload, hyperparameters=sizes)), tmp_path)
        unmet = [name for name, met in samples.exercised_values(job, 3).items() if not met]
        assert [name for name in unmet if not name.startswith("labels: ")] == [], workload
        arrays, fields = files.arrays(job.data), workloads.load(workload).fields
        assert {len(array) for name, array in arrays.items() if name.startswith("train_")} == {32}
        batches = Batches(job.data, 4, job.orders, fields)
        for place in range(8):
            expected = arrays[f"train_{fields[0]}"][4 * place : 4 * place + 4]
            np.testing.assert_array_equal(batches.batch(1, place)[0], expected)


def test_words_are_labels_however_many_a_sample_has(tmp_path):
    condition = gate.adapt(Condition(workload="bert", hyperparameters={"length": 64}))
    labels = files.arrays(samples.prepare(condition, tmp_path).data)["train_labels"]
    every = set(files.arrays(prepare_job(condition, 0, tmp_path).data)["train_labels"].flat) - {-1}
    for batches in (1, 8):
        met = set(labels[: 4 * batches].flat) - {-1}
        assert met < every
        exercised = samples.exercised_values(samples.prepare(condition, tmp_path), batches)
        assert {name: met for name, met in exercised.items() if "labels" in name} == {
            f"labels: {len(met)} of {len(every):,}": False
        }
    few = samples.prepare(gate.adapt(Condition(workload="seq2seq", hyperparameters={"length": 6})), tmp_path)
    exercised = samples.exercised_values(few, 3)
    numbers = set(files.arrays(few.data)["train_labels"].flat)
    assert {f"labels {number}" for number in numbers} == {name for name in exercised if name.startswith("labels")}
    assert all(exercised[f"labels {number}"] for number in numbers), "one of them is in one sentence of 4,000"


def test_padding_is_spread_over_the_largest_batch_where_the_data_have_none(tmp_path):
    condition = Condition(workload="lstm", hyperparameters={"length": 16}, batch_size=64)
    job = samples.prepare_large(gate.adapt(condition), tmp_path, condition.batch_size)
    arrays = files.arrays(job.data)
    first = files.arrays(job.orders)["orders"][0][: job.condition.batch_size]
    lengths, tokens = arrays["train_lengths"][first], arrays["train_tokens"][first]
    assert (files.arrays(prepare_job(condition, 0, tmp_path).data)["train_lengths"] == 16).all(), "it has none"
    assert (lengths < 16).tolist() == 32 * [False, True]
    assert len(np.unique(tokens, axis=0)) == len(tokens), "each sample is another"


def test_of_samples_that_show_as_much_those_with_new_labels_are_chosen():
    shown = np.array([0, 0, 0, 1, 0])
    labels = np.array([[7, 7, 7, 7], [7, 8, -1, -1], [1, 2, 3, -1], [9, 9, -1, -1], [1, 2, 3, 4]])
    workload = SimpleNamespace(exercises={"it": workloads.Exercise(lambda every: every["shown"] == 1)})
    rows = samples._rows({"shown": shown, "labels": labels}, workload, {}, ["labels"], 4, 4)
    assert rows["shown"].tolist() == [1, 0, 0, 0], "what is declared comes first"
    assert rows["labels"].tolist() == labels[[3, 4, 1, 0]].tolist()


@pytest.mark.parametrize("length", [64, 128])
def test_a_masked_word_stands_at_the_first_place_of_a_text_and_at_the_last(length, tmp_path):
    job = samples.prepare(gate.adapt(Condition(workload="bert", hyperparameters={"length": length})), tmp_path)
    first = {name: array[:12] for name, array in files.arrays(job.data).items() if name.startswith("train_")}
    masked = first["train_places"][first["train_labels"] != -1]
    assert (masked.min(), masked.max()) == (1, length - 2)
    assert set(first["train_tokens"][:, 0]) == {1}, "before it is what a pair starts with"
    assert set(first["train_tokens"][:, -1]) == {0, 3}, "behind it what ends one"
    exercised = samples.exercised_values(job, 3)
    assert exercised["a masked word at the first place"]
    assert exercised["a masked word at the last place"]
    assert exercised["as many masked words as there is room for"]
    elsewhere = {"places": np.array([[2, length - 3, 0]]), "labels": np.array([[9, 9, -1]])}
    for place in ("first", "last"):
        declared = workloads.load("bert").exercises[f"a masked word at the {place} place"]
        assert not declared.shown({**elsewhere, "tokens": np.ones((1, length))}).any()


def test_pairs_are_filled_with_words_to_guess_that_are_words_of_theirs():
    tokens = np.array([[1, 9, 4, 2, 3, 4, 8, 3], [1, 2, 3, 4, 3, 0, 0, 0]], dtype=np.int32)
    places = np.array([[2, 5, 0], [3, 0, 0]], dtype=np.int32)
    labels = np.array([[11, 12, -1], [13, -1, -1]], dtype=np.int32)
    made = bert.filled({"tokens": tokens, "places": places, "labels": labels})
    assert made["places"].tolist() == [[1, 2, 5], [3, 3, 3]]
    assert made["labels"].tolist() == [[9, 11, 12], [13, 13, 13]]
    assert (made["places"].dtype, made["tokens"].tolist()) == (np.int32, tokens.tolist())


def test_sentences_are_filled_up_to_their_last_place(tmp_path):
    short = {"source": [[5, 6, 3, 0, 0]], "lengths": [3], "target": [[1, 7, 0, 0, 0]], "labels": [[7, 3, -1, -1, -1]]}
    made = seq2seq.lengthened({name: np.array(array, dtype=np.int32) for name, array in short.items()})
    assert {name: array.tolist() for name, array in made.items()} == {
        "source": [[5, 6, 5, 6, 3]],
        "lengths": [5],
        "target": [[1, 7, 7, 7, 7]],
        "labels": [[7, 7, 7, 7, 3]],
    }
    exercised = samples.exercised_values(samples.prepare(gate.adapt(Condition(workload="seq2seq")), tmp_path), 3)
    assert exercised["a source of full length"], "which no name of a number is at its usual sizes"
    assert exercised["a target of full length"]


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int32])
def test_both_values_of_a_mask_are_looked_for_whatever_its_type(dtype):
    mask = np.zeros((200, 7), dtype=dtype)
    mask[-1, 3] = 1
    assert samples._unique(mask).tolist() == [0, 1], "the other value is in the last sample only"
    assert len(samples._unique(np.arange(200 * 7).reshape(200, 7))) > samples.KINDS


def test_trials_have_another_learning_rate_than_the_probe():
    for workload in ("cnn", "bert", "resnet50"):
        gated = gate.adapt(Condition(workload=workload, learning_rate=0.05))
        assert 0 < gated.learning_rate < compare.with_usual_rate(gated).learning_rate, workload


@pytest.mark.parametrize(("workload", "steps"), [("cnn", [1, 3, 3]), ("resnet50", [1, 1, 1])])
def test_a_model_that_makes_rounding_grow_takes_one_step_in_each_trial(workload, steps, tmp_path, monkeypatch):
    job, asked = samples.prepare(gate.adapt(Condition(workload=workload)), tmp_path), []
    worker = SimpleNamespace(scratch=tmp_path, ask=lambda _, **told: asked.append(told["steps"]) or {"why": ""})
    monkeypatch.setattr(trials, "_read", lambda *_: {})
    worker.condition = SimpleNamespace(world_size=1)
    for trial in range(3):
        trials._trial(worker, job, str(trial))
    assert asked == steps


def test_no_initial_weight_is_the_same_number_everywhere(tmp_path):
    for workload in ("cnn", "resnet50", "bert"):
        job = samples.prepare(gate.adapt(Condition(workload=workload)), tmp_path)
        for name, array in files.arrays(job.weights).items():
            assert array.std() > 0, name
            assert array.min() > 0 or not name.endswith("running_var")


def test_another_condition_s_certificate_is_not_believed(tmp_path, capsys, toy_framework):
    lab = FixedLab(outputs=tmp_path / "outputs")
    right, wrong = planted(""), planted("class 7 twice")
    lab.certify([right])
    kept, path = (lab.certificate_path(gate.adapt(one)) for one in (right, wrong))
    path.write_text(kept.read_text())
    assert FixedLab(outputs=tmp_path / "outputs").certify([wrong])[wrong.key].verdict == "different"
    assert f"{path}: it has the content of {kept.name}" in capsys.readouterr().err


def test_dropout_is_held_to_the_probability_that_was_asked_for_and_not_to_the_usual_one(lab, toy_framework):
    """A file that has the usual probability written in it is right only while nobody asks for another."""
    usual = planted("dropout of 0.25")
    other = usual.but(hyperparameters={**usual.hyperparameters, "dropout": 0.5})
    certificates = lab.certify([usual, other])
    assert certificates[usual.key].same
    assert {"dropout share", "dropout scale", "outputs"} <= wrong_checks(certificates[other.key])


def test_a_longer_training_that_fails_leaves_the_certificate_as_it_is(lab, toy_framework, monkeypatch):
    condition = planted("")
    before = lab.certify([condition])[condition.key]
    failure = Failure(sentence="out of toys")
    monkeypatch.setattr(gate, "train", lambda *given: (failure, "reference"))
    certificate = lab.certify([condition], training_steps=5)[condition.key]
    assert (certificate.verdict, certificate.failed) == ("not checked", "reference")
    assert "longer training of the reference failed: out of toys" in certificate.reason
    assert lab.certify([condition])[condition.key] == before


@pytest.mark.parametrize(
    "group", [{}, pytest.param({"world_size": 2, "threads": 1}, marks=pytest.mark.slow)], ids=["alone", "group"]
)
def test_a_file_that_the_hash_of_the_code_does_not_know_is_refused(tmp_path, lab, altered, group):
    (tmp_path / "hidden.py").write_text("WIDTH = 1\n")
    lines = f"import sys\n\nsys.path.append({str(tmp_path)!r})\n__import__('hid' + 'den')\n\nfrom "
    altered("workloads/cnn/mindspore.py", "from mindspore import", f"{lines}mindspore import", refused=True)
    condition = Condition(workload="cnn", framework="mindspore", batch_size=4, lane="tuned", **group)
    certificate = lab.certify([condition])[condition.key]
    assert certificate.verdict == "not checked"
    assert "imported hidden, which the hash of the code does not know" in certificate.reason


def test_a_worker_of_another_benchlib_than_the_one_that_is_hashed_is_refused(tmp_path, lab, altered):
    condition, place = in_mindspore("batchnorm2d"), "workloads/batchnorm2d/mindspore.py"
    altered(place, "from mindspore import", "WIDTH = 1\nfrom mindspore import", refused=True)
    certificate = lab.certify([condition])[condition.key]
    assert (certificate.verdict, certificate.failed) == ("not checked", "condition")
    there = tmp_path / "copy" / "benchlib" / place
    assert f"{there}, which is another file than {fingerprint.PACKAGE / place}" in certificate.reason


@pytest.mark.parametrize(
    "timed", ["compared", *(pytest.param(one, marks=pytest.mark.slow) for one in ("trained", "ceiling", "timer"))]
)
def test_a_process_that_is_timed_runs_what_was_certified(tmp_path, lab, altered, timed, monkeypatch):
    """Whatever the gate's own processes have run."""
    condition = Condition(workload="cnn", hyperparameters={"image_size": 8}, batch_size=8, lane="tuned", threads=1)
    assert lab.certify([condition])[condition.key].same
    place = "frameworks" if timed == "ceiling" else "workloads/cnn"
    altered(f"{place}/pytorch.py", "import torch\n", "import torch\n\nWIDTH = 1\n", refused=True)
    module = f"benchlib.{place.replace('/', '.')}.pytorch"
    if timed == "compared":
        found = lab.compare([condition], repetitions=1, rounds=2, block_s=0.01)
        (told,) = {m.failure for m in found.measurements}
        assert not any(m.blocks or m.trace for m in found.measurements)
    elif timed == "trained":
        (run,) = lab.train([condition], seeds=[0], epochs=1).measurements
        told = run.failure
        assert not run.epochs, "it is not trained for an hour first"
    elif timed == "ceiling":
        monkeypatch.setattr(roofline, "SIZES", (8,))
        monkeypatch.setattr(frameworks, "names", lambda: ["pytorch"])
        found = lab.ceiling("cpu")
        (told,) = set(found.failures)
        assert (found.multiply_adds_per_s, found.bytes_per_s) == (0, 0)
    else:
        told = lab.check_timers([condition])[0].failure
    assert f"imported {module} from {tmp_path}" in told


def test_a_certificate_says_what_it_was_made_with_and_can_be_compared_with_another(lab, tmp_path):
    condition = in_mindspore("batchnorm2d")
    certificate = lab.certify([condition])[condition.key]
    assert certificate.code == fingerprint.digest(gate.adapt(condition), "gate")
    assert certificate.commit == fingerprint.commit()
    assert "mindspore" in certificate.versions
    assert "torch" in certificate.reference_versions
    assert "cpu" in certificate.machine
    other = FixedLab(outputs=tmp_path / "other", patience_s=120).certify([condition])[condition.key]
    assert certificate.unlike(other) == [], "the same machine, code and versions: the same numbers"
    changed = other.model_copy(update={"digests": {**other.digests, "0/outputs:0": "another"}})
    assert certificate.unlike(changed) == changed.unlike(certificate) == ["0/outputs:0"]
    assert "reference 0/outputs:0" in certificate.unlike(other.model_copy(update={"reference_digests": {}}))


def test_a_longer_training_is_compared_where_it_is_asked_for(tmp_path, toy_framework, monkeypatch):
    lab = FixedLab(outputs=tmp_path / "outputs")
    condition = planted("")
    shorter = lab.certify([condition])[condition.key]
    assert shorter.training == 0
    longer = lab.certify([condition], training_steps=6)[condition.key]
    assert (longer.training, longer.verdict) == (6, "same")
    assert next(one for one in longer.checks if one.name == "training").tolerance == TRAINING["cpu"]
    monkeypatch.setattr(gate, "train", lambda *given: pytest.fail("it was made before"))
    assert lab.certify([condition], training_steps=6)[condition.key] == longer
    assert lab.certify([condition])[condition.key] == shorter, "whoever recorded it finds it as it was"
    monkeypatch.setattr(lab, "measures", Measures.NOTHING)
    assert lab.certify([condition], training_steps=7)[condition.key] == shorter


def test_a_longer_training_that_shows_another_model_leaves_no_certificate_that_says_the_same(
    tmp_path, toy_framework, monkeypatch
):
    """Whoever compares the condition asks for no training."""
    lab, condition = FixedLab(outputs=tmp_path / "outputs"), planted("")
    assert lab.certify([condition])[condition.key].same
    apart = np.array([[1.0, 0.9, 0.8], [1.0, 0.9, 0.7], [1.0, 0.9, 0.7]])
    monkeypatch.setattr(gate, "train", lambda *given: gate.Trained(own=apart))
    longer = lab.certify([condition], training_steps=3)[condition.key]
    assert (longer.verdict, wrong_checks(longer)) == ("different", {"training"})
    shorter = lab.certify([condition])[condition.key]
    assert (shorter.verdict, shorter.checks) == ("different", longer.checks)
    assert lab.certify([condition], training_steps=3)[condition.key].verdict == "different"
    gated = gate.adapt(condition)
    lab.certificate_path(gated).unlink()  # it is made anew, and says "the same" again
    assert lab.certify([condition], training_steps=3)[condition.key].verdict == "different"
    assert lab.certify([condition])[condition.key].verdict == "different"
    assert trace.sources([shorter.file, longer.file], lab.folder)[0].verdict == trace.MATCHES


def test_calls_that_a_step_does_not_need_are_named_by_file_and_line(tmp_path):
    file = tmp_path / "workloads" / "cnn" / "toy.py"
    file.parent.mkdir(parents=True)
    lines = ["import threading, time", "def step(loss):", "    for one in loss: sum([one.item()])", "    print()"]
    lines += ["def left():", "    threading.Thread(target=lambda: time.sleep(5), daemon=True).start()"]
    file.write_text("\n".join(lines))
    exec(compile(file.read_text(), str(file), "exec"), module := {})
    counts = {
        size: _work.calls(lambda size=size: module["step"](np.zeros(size)), (f"{tmp_path}/",)) for size in (4, 64)
    }
    assert counts[4][1] == [
        "workloads/cnn/toy.py, line 3, step: calls item() in a step",
        "workloads/cnn/toy.py, line 4, step: calls print() in a step",
    ]
    *_, left = _work.calls(module["left"], (f"{tmp_path}/",))[1]
    assert left == "workloads/cnn/toy.py, line 6, <lambda>: another thread is at work behind the step"
    found = {f"work/calls {size}": np.array(count) for size, (count, _) in counts.items()}
    (check,) = compare._work_check({**found, "work/beside": np.array([])})
    assert not check.ok
    assert "become more with the batch" in check.why
    found |= {"work/calls 64": 1.75 * found["work/calls 4"], "dropout/places": np.array([1, 1])}
    assert compare._work_check({**found, "work/beside": np.array([])})[0].ok


def test_operations_of_a_traced_step_are_calls_and_those_of_the_host_are_named():
    session, settings = MagicMock(operations=["mul"] * 30 + ["io_callback"]), MagicMock(file="workloads/toy/jax.py")
    session.multiply_adds.return_value, settings.change.return_value = 32.0, ""
    seen = _work.observe(session, settings, [None], 4)
    assert (seen["multiply_adds"], seen["calls"]) == (8.0, 31)
    assert seen["beside"] == ["workloads/toy/jax.py: a step runs io_callback on the host"]


def test_a_setting_that_a_models_file_changes_is_a_difference(tmp_path, toy_framework):
    condition = Condition(workload="toy", framework="toy", hyperparameters={"misbehave": "set threads"})
    certificate = FixedLab(outputs=tmp_path / "outputs").certify([condition])[condition.key]
    assert certificate.verdict == "different"
    assert "work: the setting threads was 1" in certificate.why


def test_several_processes_are_the_same_only_where_one_is():
    """One is looked into more closely: its optimizer, its dropout."""
    group = Condition(workload="cnn", batch_size=4, world_size=2, threads=1)
    alone, mixed = group.but(world_size=1, threads=None), group.but(precision="bf16")
    assert gate.prerequisites(alone) == []
    assert gate.prerequisites(group) == [alone]
    assert gate.prerequisites(alone.but(precision="bf16")) == [alone]
    assert set(gate.prerequisites(mixed)) == {alone, alone.but(precision="bf16"), group}


@pytest.mark.slow
def test_of_a_group_the_certificate_of_one_process_is_given_where_that_is_another_model(lab, altered):
    group = Condition(
        workload="cnn", hyperparameters={"image_size": 8}, batch_size=4, world_size=2, threads=1, lane="tuned"
    )
    altered("workloads/cnn/pytorch.py", "self.dropout1(", "(")  # what a group is not asked
    certificate = lab.certify([group])[group.key]
    assert (certificate.verdict, certificate.condition.world_size) == ("different", 1)


def test_a_longer_training_may_take_more_epochs_than_there_are_orders(tmp_path):
    """Each step of ``gcn`` is one."""
    condition = gate.adapt(Condition(workload="gcn", lane="tuned"))
    trained = gate.train(condition, tmp_path, 60, EPOCHS + 3)
    assert trained.own.shape == (3, EPOCHS + 3)
    assert trained.own[0, -1] < trained.own[0, 0]
    assert trained.fed is None


def test_a_training_that_parts_is_another_one(tmp_path, toy_framework):
    """Of a certificate that nothing else has refused."""
    right, wrong = (gate.adapt(planted(plant)) for plant in ("", "class 7 twice"))
    certificate = Certificate(
        condition=wrong,
        reference=right,
        checks=[Check(name="outputs", difference=0.0, worst=0.0, at="0/outputs", tolerance=1e-5)],
    )
    trained = gate.train(wrong, tmp_path, 60, 12)
    losses = trained.own
    assert trained.fed is None, "they are not the same, whatever else they do"
    longer = compare.with_training(certificate, losses, None)
    assert (certificate.verdict, longer.verdict) == ("same", "different")
    assert losses.shape == (3, 12)
    assert losses[0, 0] == pytest.approx(losses[1, 0], rel=1e-6), "from the same weights"
    assert compare.with_training(certificate, losses[[1, 1, 1]], None).same


def test_what_rounding_parts_is_trained_once_more_from_the_references_weights(tmp_path, toy_framework, monkeypatch):
    """What comes after the step in which it parted would else be seen by nobody."""
    right = gate.adapt(planted(""))
    with monkeypatch.context() as patched:
        patched.setattr(compare, "steps_compared", lambda *given: 1)
        trained = {plant: gate.train(gate.adapt(planted(plant)), tmp_path, 60, 12) for plant in ("", "class 7 twice")}
    certificate = Certificate(condition=right, reference=right)
    of_right, of_wrong = (
        compare.with_training(certificate, trained[plant].own[[1, 1, 1]], trained[plant].fed) for plant in trained
    )
    assert (of_right.training, of_right.verdict) == (12, "same")
    assert wrong_checks(of_wrong) == {"training from given weights", "steps from given weights"}
    fed, wrong_one = trained[""].fed[..., 0], trained["class 7 twice"].fed[..., 0]
    assert fed[0] == pytest.approx(fed[1], rel=1e-5)
    assert wrong_one[0, ::2] == pytest.approx(wrong_one[1, ::2], rel=1e-5), (
        "its loss is right: only what it adds is not"
    )


@pytest.mark.parametrize(
    ("step", "where"),
    [
        ("return self.__dict__.setdefault('kept', {}).setdefault(id(batch), self._step(*batch)[0])", "2/outputs:0"),
        ("return (1 + (__import__('sys')._getframe(1).f_code.co_name != 'outputs')) * self._step(*batch)[0]", "step"),
    ],
)
def test_what_an_operators_step_gives_is_looked_at_and_with_other_weights_too(lab, altered, step, where):
    """A session that keeps what it gave for a batch is right until the weights are others."""
    altered("frameworks/mindspore.py", "            return self._step(*batch)[0]\n", f"            {step}\n")
    certificate = lab.certify([in_mindspore("batchnorm2d")])[in_mindspore("batchnorm2d").key]
    assert "outputs" in wrong_checks(certificate)
    assert next(check for check in certificate.checks if check.name == "outputs").at.endswith(where)


def test_a_module_that_helps_a_model_s_file_is_no_framework(tmp_path, toy_framework, monkeypatch):
    folder = tmp_path / "workloads" / "helped"
    shutil.copytree(DOUBLES / "workloads" / "toy_planted", folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "workload.py").read_text(encoding="utf-8")
    (folder / "workload.py").write_text(text.replace('name="toy_planted"', 'name="helped"'), encoding="utf-8")
    (folder / "helper.py").write_text("OPTIONS = {}\n", encoding="utf-8")
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(folder.parent)])
    workload = workloads.load("helped")
    assert "helper" in workload.frameworks()
    assert frameworks.of_workload(workload) == ["toy", "toy_planted"]
    condition = gate.adapt(Condition(workload="helped", framework="toy_planted"))
    assert gate.reference(condition).framework == "toy"


def cancelled(**choices):
    hyperparameters = {"image_size": choices.pop("image_size", 32), "plant": choices.pop("plant", "")}
    return Condition(workload="toy_cancelled", hyperparameters=hyperparameters, **choices)


def test_a_bias_before_batch_normalisation_is_seen_to_be_the_same(lab, toy_framework):
    """Its gradient is 0 but for rounding, which is never alike."""
    conditions = [
        cancelled(lane="tuned"),
        cancelled(framework="mindspore", lane="tuned", image_size=8),
        cancelled(framework="mindspore", lane="tuned"),
    ]
    for certificate in lab.certify(conditions).values():
        assert certificate.same, certificate.why


@pytest.mark.slow
def test_a_bias_that_batch_normalisation_does_not_cancel_is_another_model(lab, toy_framework):
    condition = cancelled(framework="mindspore", lane="tuned", image_size=8, plant="gradient")
    certificate = lab.certify([condition])[condition.key]
    assert certificate.verdict == "different"
    assert "gradients" in wrong_checks(certificate)
    assert "outputs" not in wrong_checks(certificate)


def test_dropout_that_is_left_out_in_mixed_precision_alone_is_caught(lab, altered):
    old, new = "x = self.dropout1(", "x = (lambda x: x if torch.is_autocast_enabled('cpu') else self.dropout1(x))("
    altered("workloads/gcn/pytorch.py", old, new)
    exact, mixed = (Condition(workload="gcn", lane="tuned", precision=one) for one in ("fp32", "bf16"))
    certificates = lab.certify([exact, mixed])
    assert certificates[exact.key].verdict == "same"
    assert "dropout places" in wrong_checks(certificates[mixed.key])
    assert "repetition" in {check.name for check in certificates[mixed.key].checks}
