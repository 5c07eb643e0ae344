"""What the workload ``bert_library`` is: ``bert``, built by transformers, with its names of weights."""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Values, Weight
from benchlib.workloads.bert.workload import DEVIATION
from benchlib.workloads.bert.workload import WORKLOAD as BERT


def weights(values: Values) -> dict[str, Weight]:
    """Names (transformers'), shapes and initial distributions of all weights."""
    hidden, inner = values["hidden"], values["intermediate"]

    def dense(name: str, inputs: int, outputs: int) -> dict[str, Weight]:
        return {
            f"{name}.weight": Weight((outputs, inputs), "normal", deviation=DEVIATION),
            f"{name}.bias": Weight((outputs,), "zeros"),
        }

    def norm(name: str) -> dict[str, Weight]:
        return {f"{name}.weight": Weight((hidden,), "ones"), f"{name}.bias": Weight((hidden,), "zeros")}

    place, found = "library.bert.embeddings", {}
    for table, rows in (("word", values["words"]), ("position", values["length"]), ("token_type", 2)):
        found[f"{place}.{table}_embeddings.weight"] = Weight((rows, hidden), "normal", deviation=DEVIATION)
    found |= norm(f"{place}.LayerNorm")
    for layer in range(values["layers"]):
        name = f"library.bert.encoder.layer.{layer}"
        for which in ("query", "key", "value"):
            found |= dense(f"{name}.attention.self.{which}", hidden, hidden)
        found |= {
            **dense(f"{name}.attention.output.dense", hidden, hidden),
            **norm(f"{name}.attention.output.LayerNorm"),
        }
        found |= {**dense(f"{name}.intermediate.dense", hidden, inner), **dense(f"{name}.output.dense", inner, hidden)}
        found |= norm(f"{name}.output.LayerNorm")
    head = "library.cls.predictions"
    found |= {**dense("library.bert.pooler.dense", hidden, hidden), f"{head}.bias": Weight((values["words"],), "zeros")}
    found |= {**dense(f"{head}.transform.dense", hidden, hidden), **norm(f"{head}.transform.LayerNorm")}
    return {**found, **dense("library.cls.seq_relationship", hidden, 2)}


WORKLOAD = replace(BERT, name="bert_library", title="BERT of transformers", weights=weights)
