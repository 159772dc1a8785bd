"""The emulated board: an ATmega328P in simavr, in this process. Its clock counts CPU cycles, so every figure repeats exactly.

Line timing: request bytes take 10 bit times at the harness's baud rate, reply bytes 10 bit times at the rate that the firmware
has set (at 16 MHz the divisor nearest to 115200 gives 117647). simavr's own UART takes 11; the glue corrects that and the
other liberties that simavr takes (listed in simavr_glue.c and simavr_line.c).
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from hil.boards.base import Activity, Board, ExchangeTiming
from hil.boards.bootloader import read_bootloader
from hil.boards.elf_image import ElfImage, read_elf
from hil.boards.executed import WORDS, executed_folder, keep_executed
from hil.boards.faults import BoardDied
from hil.boards.simavr_library import simavr_library
from hil.boards.waves import Event, Happening
from streetflow.errors import InputError

PART = "atmega328p"
PAINT = 0xC5  # the firmware's start-up code fills the RAM between statics and stack with it
READ_CAPACITY_BYTES = 1024
SELF = "firmware_self"  # what HELLO is answered from
DDRB_ADDRESS, PORTB_ADDRESS, LED_BIT = 0x24, 0x25, 0x20  # the Uno's LED, at PB5
ENDLESS_LOOP = "__stop_program"  # of start.S; avr-libc has it too, where exit() ends
RECEIVER_ON_US = 100_000  # a firmware without bootloader has its UART running long before
FROM_THE_SHOP = ElfImage(((0, b"\xff\xcf"),), {})  # rjmp to itself; the CPU would run through an empty flash in circles
SETTLE_BYTES = 4
POWER_REDUCTION_ADDRESS = 0x64  # of the register PRR in data memory
NEVER = float("nan")
HELLO_INTERVAL_CYCLES = 1_200_000  # checking a full flash takes 900,000
FIRST_TURNAROUND_CYCLES = 128_000  # the slowest kernel takes a quarter of it with the paper's dimensions


class SimavrBoard(Board):
    """An emulated ATmega328P running `elf`. Several may be open at once.

    With a `bootloader` (Intel HEX) every reset starts there, as an Uno's fuses have it; `elf` may then be left out, which is a
    board fresh from the shop.
    """

    clock: ClassVar[Literal["cycles", "wall"]] = "cycles"
    boot_us: ClassVar[float] = 3_000_000

    def __init__(self, elf: Path | None, *, f_cpu_hz: int, baud: int, bootloader: Path | None = None) -> None:
        """`baud` is the rate of the harness's end of the line; the chip's end is what the firmware sets."""
        if elf is None and bootloader is None:
            raise ValueError("the emulated chip needs a program: elf, bootloader or both")
        self.name = "simavr"
        self.description = f"ATmega328P at {f_cpu_hz / 1e6:g} MHz, emulated by simavr, {baud} baud"
        self.elf = elf
        self.f_cpu_hz = f_cpu_hz
        self.hello_interval_us = HELLO_INTERVAL_CYCLES / f_cpu_hz * 1e6
        self.first_turnaround_us = FIRST_TURNAROUND_CYCLES / f_cpu_hz * 1e6
        self._set_rate(baud)
        self._ffi, self._library = simavr_library()
        self._image = read_elf(elf) if elf is not None else FROM_THE_SHOP
        self._bootloader = read_bootloader(bootloader) if bootloader is not None else None
        self._sim: Any = None
        self._buffer = self._ffi.new("uint8_t[]", READ_CAPACITY_BYTES)
        self._status = self._ffi.new("tl_status *")
        self._executed = self._ffi.new("uint8_t[]", WORDS) if executed_folder() is not None else None
        self._wrote = False
        self._heard = False
        self._traced: list[Event] | None = None

    def open(self) -> None:
        """Load the program, power on, and run until its UART listens (or for 0.1 s; HELLO then shows what is wrong)."""
        self.close()
        sim = self._library.tl_create(PART.encode(), self.f_cpu_hz, self.baud)
        if sim == self._ffi.NULL:
            raise InputError("simavr", "", f"this simavr does not know the {PART}")
        self._sim = sim
        if self._executed is not None:
            self._library.tl_mark_executed(sim, self._executed)
        try:
            self._load(self._image.chunks)
            if self._bootloader is not None:
                start, image = self._bootloader
                self._load(image.chunks)
                self._library.tl_set_reset_address(sim, start)
        except InputError:
            self.close()
            raise
        self._wire_up()
        self._start(self._library.TL_POWER_ON)

    def _wire_up(self) -> None:
        """What is to be connected to the chip before its power comes."""

    @property
    def is_open(self) -> bool:
        return self._sim is not None

    def close(self) -> None:
        if self._sim is not None:
            self._keep_trace()
            self._library.tl_destroy(self._sim)
            self._sim = None
            if self._executed is not None and self.elf is not None:
                keep_executed(self.elf, self._ffi.buffer(self._executed)[:])

    def write(self, data: bytes) -> None:
        if self._library.tl_write(self._open(), data, len(data)) != 0:
            raise ValueError(f"{len(data)} bytes are more than the emulated line holds")
        self._wrote = True
        self._refresh()

    def read(self, deadline_us: float) -> bytes:
        """Runs the chip until a frame has arrived whole, or the deadline. BoardDied once the chip has stopped for good."""
        sim = self._open()
        count = self._library.tl_read(sim, self._cycles(deadline_us), self._buffer, READ_CAPACITY_BYTES)
        self._refresh()
        data: bytes = self._ffi.buffer(self._buffer, count)[:]
        self._heard = self._heard or 0 in data
        if not data:
            self._check_alive()
        return data

    def now_us(self) -> float:
        return self._us(self._status.cycle)

    @property
    def cycle(self) -> int:
        """CPU cycles since power-on."""
        return int(self._status.cycle)

    def drain(self) -> int:
        return int(self._library.tl_drain(self._open()))

    def reset(self) -> None:
        """Reset pin: RAM keeps its contents, the clock goes on."""
        self._start(self._library.TL_RESET_PIN)

    def brown_out(self, seed: int) -> None:
        """The supply dips: RAM holds noise, and the brown-out detector resets the chip."""
        self._library.tl_scramble_ram(self._open(), seed)
        self._start(self._library.TL_BROWN_OUT)

    def hang(self) -> None:
        """A glitch throws the program into an endless loop with interrupts off; only the watchdog ends it."""
        self._library.tl_jump(self._open(), self._symbol(ENDLESS_LOOP))

    def damage_flash(self) -> None:
        """Flips a bit in flash, of what HELLO tells, until `mend_flash`: the check at the next start should find that."""
        place = self._symbol(SELF) + 20
        for address, content in self._image.chunks:
            damaged = bytearray(content)
            if address <= place < address + len(content):
                damaged[place - address] ^= 0x10
            self._load([(address, bytes(damaged))])

    def mend_flash(self) -> None:
        self._load(self._image.chunks)

    def swap(self, elf: Path) -> None:
        """Puts another program into flash, as if the chip had been flashed in mid-run; it starts at once."""
        self._image, self.elf = read_elf(elf), elf
        self._load(self._image.chunks)
        self._start(self._library.TL_RESET_PIN)

    def set_line_rate(self, baud: int) -> None:
        """The harness's end of the line changes its baud rate."""
        self._set_rate(baud)
        self._library.tl_set_baud(self._open(), baud)

    def timing(self) -> ExchangeTiming:
        status = self._status
        return ExchangeTiming(
            self._us(status.write_start) if self._wrote else NEVER,
            self._us(status.request_end) if self._wrote else NEVER,
            self._us(status.reply_start) if self._heard else NEVER,
            self._us(status.reply_end) if self._heard else NEVER,
        )

    def trace(self) -> None:
        """From now on what happens at the pins is noted, for `traced`."""
        self._traced = []
        self._library.tl_trace(self._open())

    def traced(self) -> list[Event]:
        """What was noted since `trace`, as far as it is known by now; also once the board is closed."""
        if self._traced is None:
            raise RuntimeError("the board was not asked to trace")
        if self._sim is not None:
            self._keep_trace()
        return self._traced

    @property
    def line_free_us(self) -> float:
        """When everything written so far has passed the wire."""
        return self._us(self._status.request_end)

    @property
    def watchdog_resets(self) -> int:
        """How often the watchdog has restarted the firmware since power-on."""
        return int(self._status.watchdog_resets)

    @property
    def bytes_overrun(self) -> int:
        """Request bytes lost because the firmware did not read its UART in time."""
        return int(self._status.bytes_overrun)

    def read_data_memory(self) -> bytes:
        """Registers, I/O and SRAM as they are now; index = data address."""
        size = self._ffi.new("uint32_t *")
        memory = self._library.tl_data_memory(self._open(), size)
        data: bytes = self._ffi.buffer(memory, size[0])[:]
        return data

    def stack_high_water_bytes(self) -> int | None:
        """From the lowest byte after the statics that no longer holds the paint, to the end of RAM.

        None for a firmware that doesn't paint its RAM, as the byte after its statics shows.
        """
        start = self._image.heap_start
        memory = self.read_data_memory()
        if start is None or start >= len(memory) or memory[start] != PAINT:
            return None
        touched = next((a for a in range(start, len(memory)) if memory[a] != PAINT), len(memory))
        return len(memory) - touched

    def activity(self) -> Activity | None:
        self._refresh()
        return Activity(self.cycle, int(self._status.asleep_cycles), self.read_data_memory()[POWER_REDUCTION_ADDRESS])

    def led(self) -> bool | None:
        memory = self.read_data_memory()
        return bool(memory[PORTB_ADDRESS] & memory[DDRB_ADDRESS] & LED_BIT)

    def diagnosis(self) -> str:
        self._refresh()
        status = self._status
        found = []
        if not status.receiver_on:
            found.append("the firmware has not switched its UART receiver on")
        elif not status.rate_matches:
            rate = 10 * self.f_cpu_hz / status.chip_byte_cycles
            found.append(f"the chip's UART runs at {rate:.0f} baud, this end at {self.baud}: too far apart")
        counts = {
            "watchdog resets": status.watchdog_resets,
            "bytes lost by overrun": status.bytes_overrun,
            "bytes before the receiver was on": status.bytes_ignored,
        }
        found += [f"{count} {what}" for what, count in counts.items() if count]
        return ", ".join(found)

    def _symbol(self, name: str) -> int:
        address = self._image.symbols.get(name)
        if address is None:
            raise InputError(self.elf or "firmware", "", f"has no symbol {name}: is it another firmware?")
        return address

    def _keep_trace(self) -> None:
        if self._traced is None:
            return
        count = self._ffi.new("uint32_t *")
        events = self._library.tl_traced(self._sim, count)
        if events == self._ffi.NULL and count[0]:
            raise MemoryError("no memory for the whole trace")
        self._traced = [Event(each.start, each.end, Happening(each.kind), each.value) for each in events[0 : count[0]]]

    def _set_rate(self, baud: int) -> None:
        self.baud = baud
        self.byte_us = 10e6 / baud
        self.settle_us = SETTLE_BYTES * self.byte_us

    def _load(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        for address, content in chunks:
            if self._library.tl_load(self._sim, content, len(content), address) != 0:
                end = address + len(content)
                raise InputError(
                    self.elf or "firmware", "", f"reaches to flash address {end}, beyond the end of the {PART}'s flash"
                )

    def _start(self, cause: int) -> None:
        self._library.tl_reset(self._open(), cause)
        self._wrote = self._heard = False
        self._refresh()
        self._library.tl_run_until_receiver_on(self._sim, self._cycles(self.now_us() + RECEIVER_ON_US))
        self._refresh()

    def _open(self) -> Any:
        if self._sim is None:
            raise RuntimeError("the board is not open")
        return self._sim

    def _refresh(self) -> None:
        self._library.tl_get_status(self._open(), self._status)

    def _check_alive(self) -> None:
        library, status = self._library, self._status
        if status.dead == library.TL_ALIVE:
            return
        message = self._ffi.string(library.tl_message(self._sim)).decode(errors="replace")
        message = _plain(message)
        reason = {
            library.TL_DEAD_ASLEEP: "the firmware went to sleep with interrupts off: nothing can wake it",
            library.TL_DEAD_CRASHED: "the firmware crashed: it ran off its program or wrote outside of RAM",
            library.TL_DEAD_OPCODE: "the firmware ran into an invalid instruction",
            library.TL_DEAD_RAN_OFF: "the firmware ran past the end of its program",
        }[status.dead]
        where = f"at flash address 0x{status.pc:04x}, cycle {status.cycle}"
        raise BoardDied(f"simavr: {reason} ({where}{': ' + message if message else ''})")

    def _us(self, cycles: int) -> float:
        return cycles * 1e6 / self.f_cpu_hz

    def _cycles(self, time_us: float) -> int:
        return max(0, math.ceil(time_us * self.f_cpu_hz / 1e6))


def _plain(message: str) -> str:
    """simavr's message without terminal colours and its own function's name."""
    for noise in ("\x1b[31m", "\x1b[0m", "avr_sadly_crashed"):
        message = message.replace(noise, "")
    return message.strip()
