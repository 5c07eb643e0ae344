"""The command line's part for a user's own models; nothing that takes long to import."""

from __future__ import annotations

import argparse
from typing import Any


def certify(given: argparse.Namespace) -> int:
    """Say whether files of yours are one model in several frameworks, and where they part.

    Each has the model. One of them says what goes in and out: INPUT = (3, 32, 32); CLASSES = 10. docs/own.md says
    what else a file may say. The certificates are written to outputs/NAME.

    examples:
      benchlib certify mine_torch.py mine_jax.py
      benchlib certify mine_torch.py mine_keras.py@tensorflow --create
    """
    from benchlib.matching import commands

    return commands.certify(given)


def compare(given: argparse.Namespace) -> int:
    """Certify files of yours, and measure how fast each framework trains the model.

    It times steps of training, and writes a page, a table, a figure and a notebook to outputs/NAME.

    example:
      benchlib compare mine_torch.py mine_jax.py --modes eager graph
    """
    from benchlib.matching import commands

    return commands.compare(given)


def new(given: argparse.Namespace) -> int:
    """Write the files of a workload to fill in: a small network on digits, in PyTorch and JAX.

    They lie in workloads/NAME, and run as they are. docs/extending.md explains each field.

    example:
      benchlib new workload mine
    """
    from benchlib.matching import own

    return own.write_new(given.called)


OPTIONS: dict[str, dict[str, Any]] = {
    "files": {"nargs": "+", "metavar": "FILE", "help": "mine_torch.py, or mine_jax.py@ENVIRONMENT"},
    "--modes": {"nargs": "+", "default": (), "metavar": "MODE", "help": "eager, graph ... (default: each one's usual)"},
    "--name": {"default": "", "help": "of the workload (default: the files' names; my_NAME if that is taken)"},
    "kind": {"choices": ["workload"]},
    "called": {"metavar": "NAME", "help": "of the workload: small letters, digits and _"},
    "--create": {"action": "store_true", "help": "make the environment of a framework that none has"},
}

COMMANDS = {
    certify: "files --modes --name --outputs --create",
    new: "kind called",
    compare: "files --modes --name --outputs --create --minutes",
}
