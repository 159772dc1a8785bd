"""The programs that compare the chip with numpy by the thousand: few inputs, and arguments that can't be used."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from model.policy.synthetic import random_intersection
from tests.firmware import kernel_equality, network_equality, second_emulator
from tests.firmware.test_firmware_kernel import inputs


@pytest.mark.parametrize("count", range(1, 31))
def test_any_number_of_inputs(count: int) -> None:
    part = random_intersection(1)
    assert inputs(part, count).shape == (count, part.n_inputs)


def test_fewer_inputs_than_policies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(policy: kernel_equality.Policy, _kernel: str, count: int, _folder: Path) -> dict[str, int]:
        decisions = len(list(kernel_equality.requests(policy, count)))
        return {"decisions": decisions, "equal": decisions}

    monkeypatch.setattr(kernel_equality, "compare", asked)
    monkeypatch.setattr(sys, "argv", ["kernel_equality", "--count", "3"])
    assert kernel_equality.main() == 0
    assert "table: 24 of 24 equal" in capsys.readouterr().out  # one of each intersection


@pytest.mark.parametrize(
    ("main", "arguments", "fault"),
    [
        (kernel_equality.main, "--count 0", "--count: must be at least 1, is 0"),
        (kernel_equality.main, "--out missing/x.json", "missing/x.json: can't be written: there is no folder missing"),
        (second_emulator.main, "--count -1", "--count: must be at least 1, is -1"),
        (network_equality.main, "--out .", ".: can't be written: it is a folder"),
        (network_equality.main, "--network crosing", "crosing: unknown network; did you mean crossing?"),
    ],
)
def test_bad_arguments_are_one_line(
    main: Callable[[], int],
    arguments: str,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(second_emulator, "is_installed", lambda: True)
    monkeypatch.setattr(sys, "argv", ["equality", *arguments.split()])
    with pytest.raises(SystemExit) as left:
        main()
    error = capsys.readouterr().err
    assert left.value.code == 2 and error.count("\n") == 1 and error.startswith(f"equality: {fault}")
