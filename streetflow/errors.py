"""The exceptions and warnings that say what is wrong with an input, and where."""

from __future__ import annotations

from pathlib import Path


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


class InputWarning(UserWarning):
    """Input that the engine accepts, as CityFlow does, though it hardly does what its author meant."""


class StepError(RuntimeError):
    """A step that can't be finished, e.g. a vehicle at the end of a lane from which its route doesn't go on."""


class UnknownIdError(KeyError):
    """An id that isn't in the network. ``str()`` names it and ids close to it."""

    def __init__(self, kind: str, name: object, known: tuple[str, ...]) -> None:
        import difflib

        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
        hint = f"; near matches: {', '.join(near)}" if near else ""
        self.message = f"unknown {kind} {name!r}{hint}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class Problems:
    """Collects the faults of one file, so that several can be reported at once."""

    def __init__(self, file: str | Path) -> None:
        self.file = file
        self.found: list[tuple[str, str]] = []

    def add(self, place: str, fault: str) -> None:
        self.found.append((place, fault))

    def raise_if_any(self) -> None:
        """Raise one InputError with the first fault, the others as its ``others``."""
        if self.found:
            place, fault = self.found[0]
            raise InputError(self.file, place, fault, tuple(self.found[1:]))
