"""The generator's proofs: partial sums that fit whatever the inputs, and the flash CRC."""

import hashlib
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fastcrc import crc16
from hypothesis import given
from hypothesis import strategies as st

from firmware.generator import flash_crc, narrow_row
from firmware.generator.generate import networks
from firmware.generator.grouping import CAPACITY, Row, Term, group, prove
from firmware.generator.policy import PolicyError, read_policy
from firmware.generator.stream import ROWS_MAX, block_sizes, constants
from hil.build.firmware import build_firmware
from model.policy.file import CHIP_INPUTS, CHIP_PHASES, save_policy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.errors import InputError
from tests.helpers.places import ROOT

weights = st.lists(st.integers(-127, 127).filter(bool), max_size=64)


@given(weights, st.booleans())
def test_every_term_is_summed_once_and_no_partial_sum_can_overflow(row: list[int], some_in_ram: bool) -> None:
    terms = [Term(w, f"ram+{n}" if some_in_ram and n % 3 == 0 else n) for n, w in enumerate(row)]
    grouped = group(terms)
    summed = [*grouped.lead, *itertools.chain(*grouped.partial), *grouped.single]
    assert sorted(map(str, summed)) == sorted(map(str, terms))
    assert all(term.weight > 0 for term in grouped.lead)
    for part in (grouped.lead, *grouped.partial):
        assert sum(abs(term.weight) for term in part) <= CAPACITY
        assert 255 * sum(abs(term.weight) for term in part) <= 65535
    for part in grouped.partial:
        assert len({term.weight > 0 for term in part}) == 1 and not any(isinstance(term.source, str) for term in part)


@pytest.mark.parametrize("count", [CHIP_PHASES, CHIP_PHASES + 1])
def test_training_knows_how_many_phases_become_firmware(count: int, tmp_path: Path) -> None:
    """model/policy/file.py can't read the generator's limit, so it has it as a number."""
    file = tmp_path / "policy.json"
    save_policy(random_policy([random_intersection(1, n_phases=count)]), file)
    if count > CHIP_PHASES:
        with pytest.raises(PolicyError, match="a frame carries 200"):
            read_policy(file)
    else:
        assert len(read_policy(file)["intersections"][0]["phases"]) == count


@pytest.mark.parametrize("count", [CHIP_INPUTS, CHIP_INPUTS + 1])
def test_training_knows_how_many_values_a_request_carries(count: int, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    save_policy(random_policy([random_intersection(1, widths=(count,))]), file)
    if count > CHIP_INPUTS:
        with pytest.raises(PolicyError, match="a frame carries 200"):
            read_policy(file)
    else:
        assert read_policy(file)["intersections"][0]["features"][0]["width"] == count


def test_what_only_the_model_knows_is_checked_once(tmp_path: Path) -> None:
    """By the generator for who types `pio run`; by the harness for itself, whose builds need not import it all again."""
    file = tmp_path / "policy.json"
    save_policy(random_policy([random_intersection(1)]), file)
    content = json.loads(file.read_text())
    del content["sha256"]
    content["decision_interval_s"] = "ten"
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    file.write_text(json.dumps(content | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()}))
    command = [sys.executable, "-m", "firmware.generator", str(file), str(tmp_path / "out")]
    by_hand, checked = (
        subprocess.run([*command, *flags], capture_output=True, text=True, cwd=ROOT) for flags in ([], ["--checked"])
    )
    assert by_hand.returncode == 2 and by_hand.stderr.startswith(f"{file}: decision_interval_s: ")
    assert checked.returncode == 0, checked.stderr
    with pytest.raises(InputError, match="decision_interval_s"):
        build_firmware(file, build_dir=tmp_path / "builds")


def test_a_partial_sum_that_could_overflow_is_refused() -> None:
    terms = [Term(127, 3), Term(127, 4), Term(4, 5)]
    with pytest.raises(AssertionError):
        prove(Row(terms, [], []))
    with pytest.raises(AssertionError):
        prove(Row([], [[Term(5, 3), Term(-5, 4)]], []))


@given(st.lists(st.integers(-127, 127).filter(bool), min_size=1, max_size=40), st.integers(0, 7), st.sets(st.integers(2, 127)))
def test_a_narrow_row_gives_each_input_its_weight(row: list[int], top: int, held: set[int]) -> None:
    terms = [Term(w, f"ram+{n}" if n % 3 == 0 else n) for n, w in enumerate(row)]
    planned = narrow_row.plan(terms, held, top)
    inputs = {term.source: number % 256 for number, term in enumerate(terms, 200)}
    total = 0
    for added in reversed(planned.levels):
        total = 2 * total + sum(term.weight * inputs[term.source] for term in added)
    total += sum(term.weight * inputs[term.source] for term in planned.products)
    assert total == sum(term.weight * inputs[term.source] for term in terms)
    assert not any(planned.levels[top + 1 :])


def test_a_plan_that_gives_an_input_another_weight_is_refused() -> None:
    terms = [Term(4, 3), Term(-5, 4), Term(4, 5), Term(8, 6), Term(-2, 7)]
    levels, products = narrow_row.plan(terms)
    narrow_row.prove(narrow_row.NarrowRow(levels, products), terms)
    with pytest.raises(AssertionError):
        narrow_row.prove(narrow_row.NarrowRow(levels, products), [*terms[:4], Term(2, 7)])
    with pytest.raises(AssertionError):
        narrow_row.prove(narrow_row.NarrowRow([[], *levels[:-1]], products), terms)


@given(st.lists(st.integers(-127, 127), max_size=8), st.integers(-40_000, 40_000))
def test_a_row_is_narrow_where_no_input_takes_its_sum_out_of_16_bits(row: list[int], bias: int) -> None:
    sums = [
        bias + sum(w * q for w, q in zip(row, inputs, strict=True)) for inputs in itertools.product((0, 255), repeat=len(row))
    ]
    assert narrow_row.is_narrow(row, bias) == (min(sums) >= -32_768 and max(sums) <= 32_767)


def test_small_weights_cost_fewer_cycles_than_products() -> None:
    """Three powers of two take three additions and three doublings: 12 cycles, where products take 15."""
    planned = narrow_row.plan([Term(4, 3), Term(-8, 4), Term(2, 5)])
    assert planned.products == [] and planned.levels[1:4] == [[Term(1, 5)], [Term(1, 3)], [Term(-1, 4)]]
    assert narrow_row.plan([Term(77, 3), Term(-8, 4)]).products == [Term(77, 3), Term(-8, 4)]


def test_intersections_that_compute_the_same_share_it() -> None:
    parts = [random_intersection(seed, intersection_id=f"light_{n}").model_dump() for n, seed in enumerate((1, 2, 1, 1))]
    parts[2]["phases"] = [phase + 3 for phase in parts[2]["phases"]]
    parts[3]["features"][1]["offset"] += 1
    assert networks(parts) == [0, 1, 0, 3]


@given(st.integers(1, 255))
def test_blocks_are_few_and_of_few_sizes(rows: int) -> None:
    sizes = block_sizes(rows)
    assert sum(sizes) == rows and set(sizes[:-1]) <= {ROWS_MAX} and 1 <= sizes[-1] <= ROWS_MAX
    assert len(sizes) == -(-rows // ROWS_MAX)


@pytest.mark.parametrize(("bias", "size"), [(32_767, 2), (-32_768, 2), (32_768, 3), (-32_769, 3)])
@pytest.mark.parametrize("layer", ["layer1", "layer2", "layer3"])
def test_biases_take_two_bytes_where_all_fit(layer: str, bias: int, size: int) -> None:
    parts = [random_intersection(seed).model_dump() for seed in (1, 2)]
    biases = parts[1][layer]["biases"]
    (biases[1] if layer == "layer1" else biases)[3] = bias
    assert constants(parts)["TABLE_BIAS_BYTES"] == size


def test_two_bytes_make_the_crc_zero_wherever_they_are() -> None:
    rng = random.Random(1)
    for _ in range(20):
        image = bytearray(rng.randbytes(rng.randrange(2, 400)))
        at = rng.randrange(len(image) - 1)
        image[at : at + 2] = flash_crc.solution(bytes(image), at)
        assert crc16.mcrf4xx(bytes(image)) == 0


PROGRAM = """
    .section .vectors
    clr r1
    .global flash_patch, __do_copy_data, __do_clear_bss
flash_patch:
    .word 0
    .global firmware_self
firmware_self:
    .skip 6
    .size firmware_self, 6
__do_copy_data: __do_clear_bss:
    ret
"""


@pytest.mark.parametrize(("statics", "refused"), [("char a;", False), ("char a = 1;", True)])
def test_statics_with_initial_values_are_refused(statics: str, refused: bool, tmp_path: Path) -> None:
    """The firmware's own start sets all to 0."""
    source, elf = tmp_path / "program.S", tmp_path / "program.elf"
    (tmp_path / "statics.c").write_text(statics)
    source.write_text(PROGRAM)
    files = [str(source), str(tmp_path / "statics.c")]
    subprocess.run(["avr-gcc", "-mmcu=atmega328p", "-nostartfiles", "-fno-common", *files, "-o", str(elf)], check=True)
    if refused:
        with pytest.raises(ValueError, match=r"[12] bytes of initial values"):
            flash_crc.patch(elf)
    else:
        flash_crc.patch(elf)
