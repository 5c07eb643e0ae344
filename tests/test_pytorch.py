"""PyTorch's session on models that are none of benchlib's workloads: given masks, and what sound models may have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from benchlib.frameworks import NoMasks
from benchlib.frameworks.pytorch import Session
from benchlib.workloads import Weight, Workload

BATCH = np.random.RandomState(0).standard_normal((3, 4, 8)).astype(np.float32)


class Model(nn.Module):
    """(batch, length, 8) to the same, past every kind of dropout; ``split`` has the layers of the LSTM apart."""

    def __init__(self, split: bool = False, again: bool | None = None) -> None:
        super().__init__()
        self.ways = nn.ModuleList([nn.LSTM(8, 8, batch_first=True) for _ in range(2)]) if split else None
        self.lstm = None if split else nn.LSTM(8, 8, 2, batch_first=True, dropout=0.5)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.25, batch_first=True)
        self.frozen, self.unused = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8)
        self.norm, self.again = nn.BatchNorm1d(4, momentum=None), again

    def forward(self, x):
        x = F.dropout1d(self.last(x), 0.5, self.training)
        x = self.norm(self.frozen(self.attention(x, x, x, need_weights=False)[0]))
        x = F.scaled_dot_product_attention(x, x, x, None, 0.5, True)  # is_causal
        if self.again is None:
            return self.part(x)
        return checkpoint(self.part, x, use_reentrant=False, preserve_rng_state=self.again)

    def part(self, x):
        return F.dropout(x.sin(), 0.5, self.training, inplace=True)

    def last(self, x):
        if self.lstm is not None:
            return self.lstm(x)[0]
        return self.ways[1](F.dropout(self.ways[0](x)[0], 0.5))[0]


@pytest.fixture(autouse=True)
def single():
    yield
    torch.set_default_dtype(torch.float32)  # for the whole process


def opened(model: nn.Module, mode: str = "eager", precision: str = "fp64") -> Session:
    """A session of a model as it is; the weights that it begins with are drawn."""
    session = Session("cpu", mode, precision, 0)

    def loss(model, batch):
        return model(batch[0]).square().mean()

    def sgd(model, values, rate):
        return torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=rate)

    named = {k: v for k, v in model.state_dict().items() if not k.endswith("tracked")}
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    weights = {name: Weight(tuple(one.shape), "zeros", trained=name in trained) for name, one in named.items()}
    workload = Workload("toy", "", "training", "", (), lambda _: weights, {}, 3)
    session.build(workload, SimpleNamespace(build=lambda _: model, loss=loss, optimizer=sgd), {}, 0.1)
    random = np.random.RandomState(1)
    session.load({name: random.uniform(0.1, 0.5, one.shape).astype(np.float32) for name, one in weights.items()})
    return session


def computed(session: Session) -> tuple[list, list[np.ndarray]]:
    """Places of a step with given masks, and its gradients, loss and weights after it."""
    places, batch = {}, session.put((BATCH, np.zeros(3, np.int32)))

    def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
        places[place] = (shape, p)
        return np.random.RandomState(place).uniform(size=shape) >= p

    with session.given_masks(draw):
        found = [*session.gradients(batch).values()]
        found.append(session.to_numpy(session.step(batch)))
    return places, [*found, *session.weights().values()]


def agree(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.allclose(a, b, 1e-12, 1e-12) for a, b in zip(one, other, strict=True))


def test_given_masks_reach_every_kind_of_dropout_and_layers_that_are_computed_again():
    places, found = computed(opened(Model()))
    assert list(places.values()) == [*[((3, 4, 8), 0.5)] * 2, ((3, 2, 4, 4), 0.25), ((3, 4, 4), 0.5), ((3, 4, 8), 0.5)]
    for same in (Model(split=True), Model(again=True)):
        its_places, its_own = computed(opened(same))
        assert its_places == places
        assert agree(its_own, found)
    assert not agree(computed(opened(Model(again=False)))[1], found), "its way back drops others, which must show"
    with pytest.raises(NoMasks, match="'alpha_dropout'"):
        computed(opened(nn.Sequential(nn.Linear(8, 8), nn.AlphaDropout())))


@pytest.mark.slow
def test_given_masks_are_inputs_of_compiled_steps_and_leave_others_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # not what a run that was killed has left
    session = opened(Model(again=True), "graph")
    places, found = computed(session)
    assert agree(found, computed(opened(Model()))[1])
    assert len(places) == 5
    batch = session.put((BATCH, np.zeros(3, np.int32)))
    losses = [float(session.to_numpy(session.step(batch))) for _ in range(4)]
    assert len({*losses}) == 4
    assert session.settings()["compilations"] == 1


def test_a_sound_model_may_have_frozen_unused_and_sparse_weights_and_counts():
    model = nn.Sequential(nn.Embedding(5, 8, sparse=True), nn.BatchNorm1d(4, momentum=None), nn.Linear(8, 8))
    model[2].requires_grad_(False)
    model.unused = nn.Parameter(torch.zeros(1))
    model.forward = lambda x: model[2](model[1](model[0](x.long().abs() % 5)))
    session = opened(model)
    before, batch = session.weights(), session.put((BATCH[..., 0], np.zeros(3, np.int32)))
    gradients = session.gradients(batch)
    assert gradients["0.weight"].shape == (5, 8)
    assert not gradients["unused"].any()
    names = [name for name, _ in session.layers(batch)]
    assert names == [*(f"{of} of {number}" for number in "012" for of in ("input", "output")), "loss"]
    assert session.multiply_adds(batch) == 2 * 3 * 4 * 8 * 8  # forward, and the gradient of its input
    assert agree([*session.weights().values()], [*before.values()])
    session.step(batch)
    once = session.weights()
    assert agree([once["2.weight"]], [before["2.weight"]])
    session.load({name: array.astype(np.float32) for name, array in before.items()})
    session.step(batch)
    assert agree([*session.weights().values()], [*once.values()]), "the count of batches starts again"
