"""A parameter file's YAML, read so that nothing in it means what its author did not write.

YAML 1.1, which PyYAML reads, takes 010 for 8, 1:30 for 90, yes for true and 2024-01-01 for a date; YAML 1.2 takes 0o17
for 15. Here a number is decimal, a boolean is true or false, and what either of them reads otherwise is refused. So are
keys that are there twice, tags, and files that would take long to read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import yaml

from benchlib.errors import BenchlibError, shown

MOST_BYTES = 64 * 1024
MOST_NODES = 5000  # values, lists, mappings and keys, those that an alias repeats counted again
DEEPEST = 20  # lists and mappings inside each other
LONGEST_NUMBER = 40  # characters

_TAG = "tag:yaml.org,2002:"
_PLAIN = {  # as YAML 1.2 has them; of floating-point numbers those that YAML 1.1 takes for numbers, too
    f"{_TAG}null": r"~|null|Null|NULL|",
    f"{_TAG}bool": r"true|True|TRUE|false|False|FALSE",
    f"{_TAG}int": r"[-+]?(0|[1-9][0-9]*)",
    f"{_TAG}float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    f"{_TAG}merge": r"<<",
}
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")


def read(path: Path) -> dict[str, Any]:
    """The parameters by name; a BenchlibError names the file, and the line of what is wrong."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BenchlibError(f"{path}: cannot be read ({error.strerror}): give the path of a parameter file") from None
    if len(raw) > MOST_BYTES:
        raise BenchlibError(f"{path}: is larger than {MOST_BYTES // 1024} KiB: this is no parameter file")
    try:
        values = yaml.load(raw.decode("utf-8"), Loader=_Loader)
    except UnicodeDecodeError:
        raise BenchlibError(f"{path}: is not UTF-8 text: save it as UTF-8") from None
    except _Refused as error:
        raise BenchlibError(f"{path}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: of what a scalar's own reader cannot read
        raise BenchlibError(f"{path}: is not YAML: {' '.join(str(error).split())[:400]}") from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise BenchlibError(f"{path}: expected parameters, one 'name: value' a line, found: {shown(values)}")
    return values


class _Refused(Exception):
    """What PyYAML would read, and we do not take."""


class _Loader(yaml.SafeLoader):
    """Counts what it reads, and refuses it as soon as it is too much."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._place: list[str] = []  # keys and numbers of items, down to what is being read
        self._nodes = 0
        self._sizes: dict[yaml.Node, int] = {}  # of what is whole: an alias may repeat it

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event, before = self.peek_event(), self._nodes
        named = getattr(event, "value", "") if index is None else index  # a key is its own place
        self._place.append(named.value if isinstance(named, yaml.ScalarNode) else str(named))
        if len(self._place) > DEEPEST:
            self._refuse(event, f"more than {DEEPEST} lists and mappings inside each other: no parameter is so deep")
        self._count(event, 1)
        node = super().compose_node(parent, index)
        if not isinstance(event, yaml.AliasEvent):
            self._sizes[node] = self._nodes - before
        elif node in self._sizes:
            self._count(event, self._sizes[node])
        else:
            self._refuse(event, f"*{event.anchor[:40]} is a part of itself: write out what is meant")
        self._place.pop()
        return node

    def compose_scalar_node(self, anchor: str | None) -> yaml.ScalarNode:
        event = self._untagged()
        node = super().compose_scalar_node(anchor)
        if event.implicit[0] and (wrong := _wrong(node)):  # plain, without quotes
            self._refuse(event, wrong)
        return node

    def compose_sequence_node(self, anchor: str | None) -> yaml.SequenceNode:
        self._untagged()
        return super().compose_sequence_node(anchor)

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        self._untagged()
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    self._refuse(key, f"the key {shown(key.value)} is there twice: take one of them out")
                seen.add((key.tag, key.value))
        return node

    def _untagged(self) -> yaml.NodeEvent:
        event = self.peek_event()
        if event.tag is not None:
            self._refuse(event, f"{shown(event.tag)} is a tag, and there is no need of one here: take it out")
        return event

    def _count(self, event: yaml.Event, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            self._refuse(event, f"more than {MOST_NODES:,} values, with those that aliases repeat: give shorter lists")

    def _refuse(self, what: yaml.Node | yaml.Event, why: str) -> NoReturn:
        place = [part if re.fullmatch(r"[ -~]{1,40}", part) else shown(part) for part in self._place[1:]]
        if not place:
            raise _Refused(f"line {what.start_mark.line + 1}: {why}")
        raise _Refused(f"{'.'.join(place)}: line {what.start_mark.line + 1}: {why}")


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), None)


def _wrong(node: yaml.ScalarNode) -> str:
    """What is wrong with a plain scalar: YAML 1.1 or 1.2 reads it otherwise than we do, or it has more digits than
    anybody needs. Empty where nothing is.
    """
    text = node.value
    readers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], [])
    theirs = next((tag for tag, pattern in readers if pattern.match(text)), f"{_TAG}str")
    if {theirs, node.tag} & set(_NUMBERS) and len(text) > LONGEST_NUMBER:
        return f"a number of {len(text):,} characters, beginning with {text[:LONGEST_NUMBER]}: give fewer digits"
    if re.fullmatch(r"[-+]?0o[0-7]{1,20}", text):
        value = int(text, 8)
        return f"{text} is {value} in YAML 1.2 and text in YAML 1.1: write {_instead(value)}"
    if theirs in (node.tag, f"{_TAG}value"):
        return ""
    if theirs == f"{_TAG}timestamp":
        return f"{text} is a date in YAML 1.1: put it in quotes if it is text"
    value = yaml.safe_load(text)
    return f"{text} is {value} in YAML 1.1: write {_instead(value)}"


def _instead(value: bool | float) -> str:
    if isinstance(value, bool):
        return f"{str(value).lower()}, or put it in quotes if it is text"
    return f"{value}, or the decimal number that is meant; in quotes it is text"
