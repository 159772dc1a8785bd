"""The stack's bound: small programs of known depth, and what can't be bounded."""

import subprocess
from pathlib import Path

import pytest

from hil.build.stack_bound import stack_bound
from streetflow.errors import InputError

INTERRUPT = 'ISR(TIMER0_OVF_vect, ISR_NAKED) { __asm__ volatile("push r24\\n push r25\\n pop r25\\n pop r24\\n reti"); }\n'


def built(folder: Path, source: str) -> Path:
    file, elf = folder / "program.c", folder / "program.elf"
    file.write_text("#include <avr/interrupt.h>\n" + source)
    subprocess.run(["avr-gcc", "-mmcu=atmega328p", "-Os", "-w", str(file), "-o", str(elf)], check=True)
    return elf


def test_calls_frames_and_interrupts_add_up(tmp_path: Path) -> None:
    source = (
        INTERRUPT
        + """
    __attribute__((noinline, naked)) void leaf(void) { __asm__ volatile("push r2\\n push r3\\n pop r3\\n pop r2\\n ret"); }
    __attribute__((noinline)) void framed(void) {
        volatile char room[20];
        for (char i = 0; i < 20; i++) room[i] = i;
        leaf();
        for (char i = 0; i < 20; i++) room[i] = i;
    }
    __attribute__((OS_main)) int main(void) { sei(); for (;;) framed(); }
    """
    )
    bound = stack_bound(built(tmp_path, source))
    assert [name for name, _ in bound.program] == ["main", "framed", "leaf"]
    sizes = dict(bound.program)
    assert (sizes["main"], sizes["leaf"]) == (2, 4)
    assert 2 + 20 + 2 <= sizes["framed"] <= 2 + 20 + 4, "return address, frame, Y"
    assert bound.interrupt == (("__vector_16", 4),)
    assert bound.total_bytes == sum(sizes.values()) + 4


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (
            'void f(void) { if (PINB) f(); __asm__ volatile("nop"); } int main(void) { for (;;) f(); }',
            "itself",
        ),
        ("ISR(TIMER0_OVF_vect, ISR_NOBLOCK) { PORTB++; } int main(void) { sei(); for (;;) {} }", "interrupts in an interrupt"),
        ("void (*volatile f)(void); int main(void) { for (;;) f(); }", "unknown function"),
        ('int main(void) { for (;;) __asm__ volatile("push r2"); }', "pushes in a loop"),
    ],
)
def test_what_has_no_bound_is_refused(tmp_path: Path, source: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        stack_bound(built(tmp_path, source))
