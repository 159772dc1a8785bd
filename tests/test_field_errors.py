"""Domain code names fields; what they are called on a command line is known at its edge alone."""

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.words import named
from streetflow.errors import FieldError, InputError, fields_from
from tests.helpers.places import ROOT

EDGES = {"pytest_plugin.py"}  # of the domain's packages, the one file that has a command line


def raised_options(source: str) -> Iterator[int]:
    """Lines where an exception is made of a text that begins with an option's name."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        for constant in (each for argument in call.args for each in ast.walk(argument)):
            text = constant.value if isinstance(constant, ast.Constant) else None
            if isinstance(text, str) and text.startswith("--") and name.endswith(("Error", "Network", "Warning")):
                yield call.lineno


def test_no_option_is_named_inside() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for package in ("streetflow", "model", "hil")
        for file in sorted((ROOT / package).rglob("*.py"))
        if file.name not in EDGES
        for line in raised_options(file.read_text(encoding="utf-8"))
    ]
    assert not found


def test_an_option_named_inside_would_be_found() -> None:
    code = 'def f():\n    raise InputError("--baud", "", "no")\n\nfault = FieldError("baud", "--baud")'
    assert sorted(raised_options(code)) == [2, 4]


def test_a_field_is_named_in_python() -> None:
    fault = FieldError("features", "unknown feature", "nonsense", (("batch", "too large"),))
    assert str(fault) == "features: nonsense: unknown feature (also batch: too large)"
    assert str(pickle.loads(pickle.dumps(fault))) == str(fault)


def test_where_a_value_came_from_takes_the_place_of_the_field() -> None:
    names: dict[str, tuple[str | Path, str]] = {"features": (Path("settings.json"), "x.features"), "batch": ("--batch", "")}
    with pytest.raises(InputError) as caught, fields_from(names.get):
        raise FieldError("features", "unknown feature", "nonsense", (("batch", "too large"), ("tau", "too small")))
    expected = "settings.json: x.features: nonsense: unknown feature (also --batch: too large; tau: too small)"
    assert str(caught.value) == expected and not isinstance(caught.value, FieldError)


def test_a_field_of_nobodys_stays_and_so_do_other_errors() -> None:
    for fault in (FieldError("tau", "too small"), InputError("tau", "", "can't be read")):
        with pytest.raises(type(fault)) as caught, fields_from(lambda field: None if field == "tau" else ("--x", "")):
            raise fault
        assert caught.value is fault


def test_fields_in_backticks_get_their_options_names() -> None:
    text = "its line rate is 9600 baud (`baud`); `min_green_s` is 3"
    assert named(text, {"baud": "--hil-baud"}) == "its line rate is 9600 baud (--hil-baud); `min_green_s` is 3"
