"""What a spec of lamp faults may say, and what it does to a bench."""

from __future__ import annotations

import pytest

from hil.boards.bench import Given, Into
from hil.loop.lamp_faults import check_groups, parse_lamp_faults
from streetflow.errors import FieldError


def test_a_spec_becomes_inputs_with_a_begin_and_where_it_has_a_length_an_end() -> None:
    faults = parse_lamp_faults("on@10:green2,dark@1.5:red0:0.5,short@3:red1+green1,heartbeat@4:2")
    given = [fault.inputs(1e6) for fault in faults]
    assert given == [
        [Given(11e6, Into.STUCK_ON, 8)],
        [Given(2.5e6, Into.DARK, 0), Given(3e6, Into.DARK, 0, 0)],
        [Given(4e6, Into.SHORTED, 3, 1, 5)],
        [Given(5e6, Into.HEARTBEAT_CUT), Given(7e6, Into.HEARTBEAT_CUT, level=0)],
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("drak@10:green2", "'drak@10:green2' is not a fault; did you mean dark?"),
        ("on:green2", "is not a fault"),
        ("on@10", "'on@10' needs one lamp"),
        ("on@10:blue2", "'blue2' is no lamp"),
        ("on@10:green16", "'green16' is no lamp"),
        ("on@-1:green2", "'-1' is no time in seconds"),
        ("short@1:red0", "needs two lamps"),
        ("dark@1:red0:x", "'x' is no time in seconds"),
        ("dark@1:red0:1:2", "needs one lamp"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line(text: str, fault: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse_lamp_faults(text)
    assert fault in str(caught.value)


def test_a_lamp_that_the_crossing_does_not_have_is_refused() -> None:
    check_groups(parse_lamp_faults("on@1:green8"), 9, "here")
    with pytest.raises(FieldError, match="green9: here has the groups 0 to 8"):
        check_groups(parse_lamp_faults("on@1:green9"), 9, "here")
