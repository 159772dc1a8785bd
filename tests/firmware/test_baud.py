"""Baud rates: hil/build/baud.py and firmware/include/hardware.h must choose the same."""

import re
import subprocess

import pytest

from hil.build.baud import LIMIT, divisor
from hil.build.project import project_root
from streetflow.errors import InputError

RATES = [(f, baud) for f in (16_000_000, 8_000_000, 20_000_000, 1_000_000) for baud in (1200, 9600, 57_600, 76_800)]
RATES += [(f, baud) for f in (999_999, 1_200_000, 20_000_001, 10**9) for baud in (300, 1200, 9600)]
RATES += [(f, baud) for f in (16_000_000, 20_000_000) for baud in (300, 600, 1199, 2_000_000, 2_000_001)]
RATES += [(f, baud) for f in (16_000_000, 8_000_000) for baud in (115_200, 230_400, 250_000, 500_000, 1_000_000)]


@pytest.mark.parametrize(("f_cpu_hz", "baud"), RATES)
def test_c_and_python_choose_the_same_divisor(f_cpu_hz: int, baud: int) -> None:
    include = project_root() / "firmware" / "include"
    command = ["gcc", "-E", "-P", f"-I{include}", f"-DF_CPU={f_cpu_hz}L", f"-DBAUD={baud}L", "-"]
    source = '#include "hardware.h"\nUART_UBRR | UART_DOUBLE_SPEED\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    try:
        setting = divisor(f_cpu_hz, baud)
    except InputError:
        assert result.returncode != 0 and "#error" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    ubrr, u2x = result.stdout.strip().replace("L", "").split("|")
    assert re.fullmatch(r"[\d\s()+*/-]+", ubrr)
    assert (int(eval(ubrr.replace("/", "//"))), int(u2x) == 1) == (setting.ubrr, setting.u2x)


def test_known_rates() -> None:
    at_16 = divisor(16_000_000, 115_200)
    assert (at_16.ubrr, at_16.u2x, round(at_16.actual_baud)) == (16, True, 117_647)
    assert at_16.error == pytest.approx(0.02124, abs=1e-5)
    at_8 = divisor(8_000_000, 115_200)
    assert (at_8.ubrr, at_8.u2x, round(at_8.actual_baud)) == (8, True, 111_111)
    assert at_8.error == pytest.approx(-0.03549, abs=1e-5) and abs(at_8.error) > LIMIT, "the one exception"
    assert divisor(16_000_000, 500_000)[:2] == (1, False) and divisor(8_000_000, 500_000)[:2] == (0, False)
    for impossible in ((16_000_000, 230_400), (16_000_000, 3_000_000), (16_000_000, 300), (0, 9600), (16_000_000, -1)):
        with pytest.raises(InputError, match=r"^(baud|f_cpu_hz): "):
            divisor(*impossible)
