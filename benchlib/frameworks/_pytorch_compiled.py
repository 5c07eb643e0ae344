"""Graph mode of PyTorch: the compiler's configuration and compilations, and functions compiled with given masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo
import torch._inductor.config
from torch import Tensor
from torch.nn import functional as F

from benchlib.frameworks import Draw
from benchlib.frameworks._pytorch_dropouts import RECURRENT, DrawnMasks, Masks


class CompiledWithMasks:
    """A function compiled once more. Its dropouts take masks, which are buffers of its graphs: each call draws anew."""

    def __init__(self, function: Callable) -> None:
        def with_masks(batch):  # code of its own: what is compiled of it is no candidate where the other is called
            return function(batch)

        self.compiled: set[str] = set()  # PyTorch's numbers of what was
        self.call = torch.compile(with_masks, backend=self.compile, dynamic=False)

    def __call__(self, batch: Any) -> Tensor:
        recurrent = {name: partial(self.recur, getattr(torch._VF, name)) for name in RECURRENT}
        dropouts = {name: self.outside(function) for name, function in vars(F).items() if _drops(name)}
        with patch.multiple(torch._VF, **recurrent), patch.multiple(F, **dropouts):
            before = {*compilations()}
            result = self.call(batch)
            self.compiled.update({*compilations()} - before)
            return result

    @contextmanager
    def given(self, draw: Draw, device: torch.device) -> Iterator[None]:
        """Within it masks are from ``draw``, one forward pass's."""
        self.drawn = DrawnMasks(draw, device)
        yield

    def outside(self, function: Callable) -> Callable:
        """A function that drops, where it is in no graph: code beside a recurrent operator is not compiled."""

        def drop(*args, **kwargs):
            if torch.compiler.is_compiling():
                return function(*args, **kwargs)
            return self.drawn.substitute(function, function.__name__, args, kwargs)

        return drop

    @torch.compiler.disable
    def recur(self, operator: Callable, *args) -> tuple[Tensor, ...]:
        """A recurrent operator, which is in no graph."""
        return self.drawn.substitute(operator, operator.__name__, args, {})

    def compile(self, graph: torch.fx.GraphModule, inputs: Sequence[Tensor]) -> Callable:
        """A graph of its code as it is usually compiled, but for the masks."""
        masks: list[tuple[Tensor, float]] = []
        copied = torch.fx.Graph()
        copied.output(copied.graph_copy(graph.graph, {}))
        plain, passes = torch.fx.GraphModule(graph, copied), {None}
        self.mask(graph, masks)
        graph.meta.pop("dynamo_compile_id", None)  # else each buffer would have to be one of the model's
        from torch._inductor.compile_fx import compile_fx  # eager mode has no need of it

        compiled = compile_fx(graph, inputs)

        def run(*args):
            if self.drawn in passes:  # once more in this pass, as one module's code for several: its masks are kept
                with self.drawn:
                    return plain(*args)
            passes.clear()
            passes.add(self.drawn)
            for mask, p in masks:
                mask.copy_(self.drawn.take_drawn(mask.shape, p))
            return compiled(*args)

        return torch.compiler.disable(run) if masks else compiled

    def mask(self, graph: torch.fx.GraphModule, masks: list[tuple[Tensor, float]]) -> None:
        """Give a graph, and those within it, buffers for the masks of their dropouts, in order."""
        for node in list(graph.graph.nodes):
            inner = getattr(graph, node.target) if node.op == "get_attr" else None
            if isinstance(inner, torch.fx.GraphModule):
                self.mask(inner, masks)
            places = _places(node) if node.op == "call_function" else []
            if not places:
                continue
            with graph.graph.inserting_before(node):
                buffers = []
                for shape, p, device in places:
                    mask = torch.zeros(shape, dtype=torch.bool, device=device)
                    graph.register_buffer(f"mask{len(masks)}", mask)
                    buffers.append(graph.graph.get_attr(f"mask{len(masks)}"))
                    masks.append((mask, p))
                call = graph.graph.call_function(_masked(node.target), (buffers, *node.args), node.kwargs)
            call.meta = node.meta
            node.replace_all_uses_with(call)
            graph.graph.erase_node(node)
        graph.recompile()


def compilations() -> list[str]:
    """PyTorch's numbers of what it has compiled, such as 2/0: the first time that part 2 was."""
    done = [one for one in torch._dynamo.utils.get_compilation_metrics() if one.is_forward and not one.fail_type]
    return [str(one.compile_id) for one in done]


def config() -> dict[str, Any]:
    return {**torch._dynamo.config.get_config_copy(), **torch._inductor.config.get_config_copy()}


def _masked(function: Callable) -> Callable:
    """A function whose dropouts take the masks given first."""

    def masked(masks: Sequence[Tensor], *args, **kwargs) -> Any:
        left = iter(masks)
        return Masks(lambda *_: next(left)).substitute(function, function.__name__, args, kwargs)

    return masked


def _places(node: torch.fx.Node) -> list[tuple[Sequence[int], float, torch.device]]:
    """The dropouts of a graph's node: shape, probability and device of each."""
    found: list[tuple[Sequence[int], float, torch.device]] = []

    def take(shape: Sequence[int], p: float) -> Tensor:
        mask = torch.zeros(shape, dtype=torch.bool, device=args[0].device)
        found.append((shape, p, mask.device))
        return mask

    name = getattr(node.target, "__name__", "")
    if "dropout" in name or name in (*RECURRENT, "scaled_dot_product_attention", "multi_head_attention_forward"):
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda one: one.meta["example_value"])
        with args[0].fake_mode:
            Masks(take).substitute(node.target, name, args, kwargs)
    return found


def _drops(name: str) -> bool:
    return "dropout" in name or name == "scaled_dot_product_attention"
