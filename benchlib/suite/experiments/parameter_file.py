"""A parameter file's YAML: a number is decimal, a boolean is true or false, and all else is text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from benchlib.errors import BenchlibError, shown

MOST_BYTES = 100_000


def read(path: Path) -> dict[str, Any]:
    """The parameters by name; a BenchlibError names the file, and the line of what is wrong."""
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise BenchlibError(f"{path}: is larger than {MOST_BYTES // 1000} kB: this is no parameter file")
        values = yaml.load(raw.decode("utf-8"), Loader=_Loader)
    except OSError as error:
        raise BenchlibError(f"{path}: cannot be read ({error.strerror}): give the path of a parameter file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, or a number of 5,000 digits
        raise BenchlibError(f"{path}: is not YAML: {' '.join(str(error).split())[:400]}") from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise BenchlibError(f"{path}: expected parameters, one 'name: value' a line, found: {shown(values)}")
    return values


class _Loader(yaml.SafeLoader):
    """YAML without aliases, tags and double keys, and without what only YAML 1.1 reads so (010 is 8, no is false)."""

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            raise yaml.MarkedYAMLError(problem="write it out: no alias, no tag", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        keys = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        for twice in {key for key in keys if keys.count(key) > 1}:
            raise yaml.MarkedYAMLError(problem=f"the key {shown(twice)} is there twice", problem_mark=node.start_mark)
        return node


for _tag, _pattern in {
    "null": "~|null|",
    "bool": "true|false",
    "int": "[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)
