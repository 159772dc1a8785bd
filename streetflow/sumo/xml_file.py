"""Reading SUMO's XML files: elements know their line, so that faults can be found; entities, bombs perhaps, are refused."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from streetflow.errors import InputError, cannot_be
from streetflow.input_file import read_input
from streetflow.near import did_you_mean

TRUE = {"1", "true", "yes", "on", "x", "t"}
FALSE = {"0", "false", "no", "off", "-", "f"}


@dataclass
class Element:
    """An element with its attributes as texts; methods give values, or raise an InputError that names file, line and fault."""

    file: Path
    line: int
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)

    @property
    def place(self) -> str:
        name = self.attributes.get("id")
        return f"line {self.line}: <{self.tag}{f' id={name!r}' if name is not None else ''}>"

    def fault(self, text: str) -> InputError:
        return InputError(self.file, self.place, text)

    def each(self, tag: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def text(self, name: str) -> str:
        """The attribute; a fault where it is missing or empty."""
        value = self.attributes.get(name)
        if not value:
            raise self.fault(f"{name} is {'missing' if value is None else 'empty'}")
        return value

    def words(self, name: str) -> list[str]:
        return self.get(name).split()

    def number(self, name: str, default: float | None = None, *, above: float = -math.inf) -> float:
        """A finite number above ``above``."""
        if name not in self.attributes and default is not None:
            return default
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > above):
            limit = "" if above == -math.inf else f" above {above:g}"
            raise self.fault(f"{name} must be a number{limit}, is {text!r}")
        return value

    def index(self, name: str) -> int:
        """A whole number from 0 up."""
        text = self.text(name)
        if not (text.isascii() and text.isdecimal()):
            raise self.fault(f"{name} must be a whole number, is {text!r}")
        return int(text)

    def flag(self, name: str) -> bool:
        """False where it is missing."""
        value = self.get(name, "0").lower()
        if value not in TRUE | FALSE:
            raise self.fault(f"{name} must be true or false, is {value!r}")
        return value in TRUE

    def time_s(self, name: str, default: float | None = None) -> float:
        """Seconds, or SUMO's [days:]hours:minutes:seconds."""
        text = self.get(name)
        if ":" not in text:
            return self.number(name, default)
        try:
            parts = [float(part) for part in text.split(":")]
        except ValueError:
            parts = []
        if len(parts) not in (3, 4):
            raise self.fault(f"{name} must be a time in s or as hours:minutes:seconds, is {text!r}")
        return sum(part * unit for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False))

    def shape(self, name: str) -> list[tuple[float, float]]:
        """Points ``x,y`` or ``x,y,z`` in m, the height left out."""
        points = []
        for word in self.words(name):
            try:
                x, y = (float(part) for part in word.split(",")[:2])
            except ValueError:
                raise self.fault(f"{name} must be points such as 1.0,2.5, not {word!r}") from None
            if not (math.isfinite(x) and math.isfinite(y)):
                raise self.fault(f"{name} holds {word!r}: no place")
            points.append((x, y))
        return points


def read_xml(file: Path, roots: tuple[str, ...], kind: str) -> Element:
    """The root of an XML file (or of one that gzip has packed).

    Args:
        file: to read.
        roots: names that its root may have.
        kind: what it should be, for the error: "a SUMO network".

    Raises:
        InputError: it can't be read, is no XML, or another kind of file.
    """
    try:
        content = read_input(file)
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as fault:
        raise cannot_be("read", file, fault if isinstance(fault, OSError) else ValueError(fault)) from None
    root = _parse(content, file)
    if root.tag not in roots:
        hint = did_you_mean(root.tag, roots)
        raise InputError(file, f"line {root.line}", f"is not {kind}: it begins with <{root.tag}>, not <{roots[0]}>{hint}")
    return root


def _parse(content: bytes, file: Path) -> Element:
    parser = expat.ParserCreate()
    open_elements = [Element(file, 0, "", {})]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(file, parser.CurrentLineNumber, tag, attributes)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def entity(name: str, *_: object) -> NoReturn:
        raise InputError(file, f"line {parser.CurrentLineNumber}", f"declares the entity {name!r}: such files aren't read")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: open_elements.pop()
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as fault:
        why = expat.errors.messages.get(fault.code, str(fault.code))
        raise InputError(file, f"line {fault.lineno}, column {fault.offset + 1}", f"is not XML: {why}") from None
    return open_elements[0].children[0]
