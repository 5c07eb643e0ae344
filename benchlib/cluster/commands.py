"""The commands for many machines, as ``benchlib.cli`` has them: their docstrings are their help."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from benchlib.cluster.engines import VARIABLE
from benchlib.errors import BenchlibError


def merge(given: argparse.Namespace) -> int:
    """Unite folders of results of several machines in a new one.

    That is --outputs, or else outputs/merged. The same rows are there once. Where numbers under one key differ, they
    are named, and nothing is written.
    """
    from benchlib.cluster.merge import merge as unite

    print(unite(given.folders, given.outputs or Path("outputs", "merged")))
    return 0


def diff(given: argparse.Namespace) -> int:
    """Compare two folders of results, or two hosts, dates or versions: which ratios have changed.

    A side is a FOLDER, or a part of one: FOLDER@host=NAME, @date=2026-11-01..2026-11-28, @environment=NAME or
    @PACKAGE=VERSION. Each ratio is taken within its own host.

    example:
      benchlib diff outputs/both@host=n1 outputs/both@host=n2 --page hosts.html
    """
    from benchlib.cluster import diff, diff_page

    if given.page and given.page.is_dir():
        raise BenchlibError(f"--page {given.page}: a folder is there: name a file in it")
    found = diff.compare(given.before, given.after)
    print(diff_page.text(found))
    if given.page:
        given.page.parent.mkdir(parents=True, exist_ok=True)
        given.page.write_text(diff_page.page(found), encoding="utf-8")
    if not found.changes:
        raise BenchlibError(
            f"{given.before} and {given.after}: nothing was compared; give sides with a ratio in common"
        )
    return int(found.fails(given.fail_on))


def job(given: argparse.Namespace) -> int:
    """Measure what a document asks for, on this host: an engine (--on of run) starts it where it chooses."""
    from benchlib.cluster.lab import Lab, jobs

    return jobs.work(given.document, lambda **choices: Lab(on="", **choices))


def use(on: str | None) -> None:
    """Have all labs from now on, those of kernels too, measure on an engine."""
    if on is not None:
        os.environ[VARIABLE] = on


OPTIONS: dict[str, dict[str, Any]] = {
    "folders": {"type": Path, "nargs": "+", "metavar": "FOLDER", "help": "folders of results, or files of visits"},
    "document": {"type": Path, "metavar": "FILE", "help": "of jobs/ in a folder of results"},
    "--on": {"metavar": "ENGINE", "help": "local, 'ray HOST:PORT', or slurm with options: 'slurm --partition=gpu'"},
    **{one: {"metavar": one.upper(), "help": "a folder of results, or a part of one"} for one in ("before", "after")},
    "--page": {"type": Path, "metavar": "FILE", "help": "write a page (HTML), too"},
    "--fail-on": {"choices": ["changed", "slower"], "help": "the exit code is 1 if a ratio has, or something is, so"},
}
COMMANDS = {merge: "folders --outputs", diff: "before after --page --fail-on", job: "document"}
