"""The workload ``bert_library``: transformers' BertForPreTraining, with the loss and the optimizer of ``bert``."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining

from benchlib.workloads import Values
from benchlib.workloads.bert.pytorch import loss, optimizer, schedule
from benchlib.workloads.bert.workload import EPSILON

__all__ = ["build", "loss", "optimizer", "schedule"]


class Model(nn.Module):
    """As ``bert``'s: transformers' own heads guess every word; here they get those that are masked, as ours do."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=values["words"],
            hidden_size=values["hidden"],
            num_hidden_layers=values["layers"],
            num_attention_heads=values["heads"],
            intermediate_size=values["intermediate"],
            hidden_dropout_prob=values["dropout"],
            attention_probs_dropout_prob=values["dropout"],
            max_position_embeddings=values["length"],
            layer_norm_eps=EPSILON,
            attn_implementation="sdpa",
        )
        self.library = BertForPreTraining(config)
        for module in self.library.modules():  # position_ids and the like: not trained, the same in every model
            module._buffers = {name: buffer for name, buffer in module._buffers.items() if buffer is None}

    def forward(self, tokens: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        positions = places.new_ones(tokens.shape).cumsum(1) - 1
        found = self.library.bert(
            input_ids=tokens, token_type_ids=segments, position_ids=positions, attention_mask=(tokens != 0).long()
        )
        x = found.last_hidden_state
        masked = x.gather(1, places.unsqueeze(2).expand(-1, -1, x.shape[2]))
        return self.library.cls(masked, found.pooler_output)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)
