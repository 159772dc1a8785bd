"""What ``import streetflow`` offers, and that it is described."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import streetflow
from streetflow import Archive, Engine


def test_all_names_what_there_is() -> None:
    assert sorted(streetflow.__all__) == list(streetflow.__all__)
    assert all(hasattr(streetflow, name) for name in streetflow.__all__)
    public = {name for name, value in vars(streetflow).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public == set(streetflow.__all__) - {"__version__"}
    raised = [getattr(streetflow, name) for name in streetflow.__all__ if name.endswith("Error")]
    assert all(issubclass(each, Exception) and each.__doc__ for each in raised)


def methods() -> Iterator[Any]:
    for kind in (Engine, Archive):
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith("_") or (kind, name) == (Engine, "__init__"):
                yield pytest.param(method, id=f"{kind.__name__}.{name}")


@pytest.mark.parametrize("method", list(methods()))
def test_methods_say_what_they_take(method: Any) -> None:
    text = inspect.getdoc(method)
    assert text is not None and text.split("\n")[0].endswith(".")
    parameters = [name for name in inspect.signature(method).parameters if name != "self"]
    described = text.partition("Args:\n")[2].partition("\n\n")[0]
    assert [name for name in parameters if name not in described.replace(",", " ").replace(":", " ").split()] == []
