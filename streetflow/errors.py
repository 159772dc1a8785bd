"""The exceptions and warnings that say what is wrong with an input, and where."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from streetflow.near import near_matches

_T = TypeVar("_T")


class InputError(ValueError):
    """Bad input. ``str()`` is ``FILE: PLACE: FAULT``, with empty parts left out.

    file: the file (or call) that holds the fault. place: a JSON path such as ``roads[3].lanes[0].width``, or
    ``line 4, column 7``, or "". fault: what is wrong, in words. others: further (place, fault) pairs of the file.
    """

    def __init__(self, file: str | Path, place: str, fault: str, others: tuple[tuple[str, str], ...] = ()) -> None:
        self.file = str(file)
        self.place = place
        self.fault = fault
        self.others = others
        super().__init__(file, place, fault)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.file, self.place, self.fault) if part)
        if self.others:
            shown = "; ".join(f"{place}: {fault}" for place, fault in self.others[:3])
            rest = len(self.others) - 3
            text += f" (also {shown}" + (f"; and {rest} more)" if rest > 0 else ")")
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return InputError, (self.file, self.place, self.fault, self.others)


class FieldError(InputError):
    """A value that a field, such as an argument of a function, can't have. ``str()`` is ``FIELD: PLACE: FAULT``.

    field: its name in Python, such as ``f_cpu_hz``. others: further (field, fault) pairs. Code that took the value from an
    option or a file names that instead of the field: `fields_from`.
    """

    def __init__(self, field: str, fault: str, place: str = "", others: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(field, place, fault, others)
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        return FieldError, (self.field, self.fault, self.place, self.others)


Source = Callable[[str], "tuple[str | Path, str] | None"]


@contextmanager
def fields_from(source: Source) -> Iterator[None]:
    """FieldErrors become InputErrors that name where the value came from.

    Args:
        source: Returns a field's file (or option) and the place in it; None for a field that it doesn't know, whose error
            stays as it is.
    """
    try:
        yield
    except FieldError as fault:
        found = source(fault.field)
        if found is None:
            raise
        (file, place), others = found, [(source(field) or (field, ""), why) for field, why in fault.others]
        place = ": ".join(part for part in (place, fault.place) if part)
        rest = tuple((place or str(file), why) for (file, place), why in others)
        raise InputError(file, place, fault.fault, rest) from None


def whole_number(value: object, name: str) -> int:
    """``value`` as an int; numpy's integers are accepted. TypeError naming the parameter for anything else."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be a whole number (an integer), not {value!r}") from None


def cannot_be(what: str, file: str | Path, fault: OSError | ValueError) -> InputError:
    """The InputError for a file that can't be "read" or "written". A ValueError says that its name holds a NUL."""
    return InputError(file, "", f"can't be {what}: {getattr(fault, 'strerror', None) or fault}")


class InputWarning(UserWarning):
    """Input that the engine accepts, as CityFlow does, though it probably isn't what its author intended."""


def report_input_warnings(report: Callable[[str], None]) -> None:
    """From now on pass each InputWarning to ``report``, once, instead of printing Python's two lines; other warnings are
    shown as before. ``warnings.catch_warnings`` around the call limits this to its block."""
    usual = warnings.showwarning
    reported: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any, **options: Any) -> None:
        if not issubclass(category, InputWarning):
            usual(message, category, *rest, **options)
        elif str(message) not in reported:
            reported.add(str(message))
            report(f"warning: {message}")

    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = show


class StepError(RuntimeError):
    """A step that can't be finished, e.g. because a vehicle reaches the end of a lane from which its route doesn't continue."""


class UnknownIdError(KeyError):
    """An id that doesn't exist. ``str()`` names it and ids close to it, which are looked up only then.

    kind: "road", "intersection" ... known: returns the ids that exist.
    """

    def __init__(self, kind: str, name: object, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(name)
        self.kind = kind
        self.name = name
        self._known = known

    def __str__(self) -> str:
        near = self._near_matches()
        return self._fault() + (f"; near matches: {', '.join(near)}" if near else "")

    def _near_matches(self) -> list[str]:
        return near_matches(self.name, self._known())

    def _fault(self) -> str:
        return f"unknown {self.kind} {self.name!r}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.kind, self.name, self._near_matches())


class UnknownVehicleError(UnknownIdError, RuntimeError):
    """A vehicle that isn't in the engine (any more). CityFlow raises a RuntimeError with these first words."""

    def _fault(self) -> str:
        return f"Vehicle '{self.name}' not found"


def _rebuilt(kind_of_error: type[UnknownIdError], kind: str, name: object, known: list[str]) -> UnknownIdError:
    return kind_of_error(kind, name, lambda: known)


class Problems:
    """Collects the faults of one file, so that all can be reported at once."""

    def __init__(self, file: str | Path) -> None:
        self.file = file
        self.found: list[tuple[str, str]] = []

    def add(self, place: str, fault: str) -> None:
        self.found.append((place, fault))

    def take(self, read: Callable[..., _T], *arguments: Any, default: _T | None = None) -> _T:
        """What ``read(*arguments)`` returns; after an InputError, which is collected, the default."""
        try:
            return read(*arguments)
        except InputError as error:
            self.found += [(error.place, error.fault), *error.others]
            return default  # type: ignore[return-value]  # never used: raise_if_any comes first

    def raise_if_any(self) -> None:
        """Raise one InputError with the first fault, the others as its ``others``."""
        if self.found:
            (place, fault), *others = dict.fromkeys(self.found)  # a faulty object is found with each of its fields
            raise InputError(self.file, place, fault, tuple(others))
