"""`tinylight hil` with a chip that is the light: what can't be is refused before anything is built."""

from __future__ import annotations

import pytest

from tests.helpers.run_cli import tinylight


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--mode", "alne"), "--mode: unknown mode 'alne'; did you mean alone"),
        (("--monitor",), "--monitor: needs a chip that drives lamps: mode light or alone"),
        (("--lamp-faults", "on@1:red0"), "--lamp-faults: needs a chip that drives lamps"),
        (("--mode", "light", "--detector-faults", "dead:10%"), "--detector-faults: needs a chip that senses: mode alone"),
        (
            ("--mode", "alone", "--detector-faults", "dad:10%"),
            "--detector-faults: 'dad:10%' is not a fault; did you mean dead?",
        ),
        (("--mode", "alone", "--lamp-faults", "on@1:blue0"), "--lamp-faults: 'on@1:blue0': 'blue0' is no lamp"),
        (("--mode", "alone", "--board", "host"), "--board: host's pins can't be seen"),
        (("--mode", "alone", "--clearance", "hold"), "--clearance: in mode alone the signal plan"),
        (("--mode", "alone", "--longest-red", "5"), "--longest-red: must be 10 to 600 s, is 5"),
        (
            ("--mode", "alone", "--faults", "hang=0.1"),
            "--faults: 'hang' strikes requests at random, which mode alone doesn't have",
        ),
        (("--mode", "light", "--faults", "power@x"), "--faults: 'power@x' is not a valid event"),
        (("--faults", "weight@60"), "--faults: 'weight' needs a chip that drives lamps: mode light or alone"),
        (("--page", "page.html"), "--page: has lamps and loops: --mode light or alone"),
        (("--events", "log.csv"), "--events: a chip that only answers tells none"),
        (("--mode", "alone", "--record", "run.json"), "--record: keeps requests and answers"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tinylight("hil", "--network", "crossing", *arguments) == 2
    assert fault in " ".join(capsys.readouterr().err.split())
