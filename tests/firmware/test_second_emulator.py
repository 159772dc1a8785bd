"""The kernels' cycles in avr8js, another emulator, against those that simavr counts: the same, to the cycle."""

import pytest

from tests.firmware.second_emulator import MISSING, compare, is_installed
from tests.helpers.random_policy import make_random_policy

DECISIONS = 100
# of an inference 12+9 -> 18 -> 20 -> 9, median and slowest; the table's time depends on how many activations are 0
MEDIAN_CYCLES = {"unrolled": (5_700, 6_000), "table": (9_000, 10_500)}
MOST_CYCLES = {"unrolled": (5_700, 6_000), "table": (9_000, 11_300)}


@pytest.mark.skipif(not is_installed(), reason=MISSING)
@pytest.mark.parametrize("kernel", ["unrolled", "table"])
@pytest.mark.parametrize("seed", [1, 4, 5])  # of DRAWS, the slowest among them
def test_both_emulators_count_the_same_cycles(kernel: str, seed: int) -> None:
    policy = make_random_policy(seed)
    result = compare(policy, policy.intersections[0], kernel, DECISIONS)
    assert result["decisions"] == DECISIONS
    assert len(result["stopwatch_cycles"]) == 1, "the stopwatch's own cycles are always the same, so the kernel's are equal"
    assert 5 <= result["stopwatch_cycles"][0] <= 60
    for figure, windows in (("median", MEDIAN_CYCLES), ("largest", MOST_CYCLES)):
        least, most = windows[kernel]
        assert least < result["layer_cycles"][figure] <= most
    assert result["layer_cycles"]["largest"] < result["kernel_cycles"]["largest"]
