"""The deepest that the firmware's stack can ever be, from its machine code: every path, every call, interrupts included.

The disassembly is followed instruction by instruction from `main` and from each interrupt: pushes, frames and calls deepen the
stack. An interrupt can come at the deepest point of the program, but none can come in an interrupt, since none of ours allows
it; what can't be bounded (recursion, an unknown indirect call, interrupts allowed in an interrupt) is refused.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from streetflow.errors import InputError

RETURN_ADDRESS_BYTES = 2
LIMIT_BYTES = 2048
SKIPS = frozenset({"cpse", "sbrc", "sbrs", "sbic", "sbis"})
ENDS = frozenset({"ret", "reti"})
STACK_POINTER_LOW = "0x3d"
INTERRUPT = re.compile(r"__vector_\d+$")
INDIRECT = {  # functions that call by pointer, and what
    "infer_kernel": re.compile(r"kernel_\d+$"),
}

_SYMBOL = re.compile(r"^([0-9a-f]+) <(\S+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)(?:\t([^;]*?))?\s*(?:;.*?(?:0x([0-9a-f]+)\b.*)?)?$")


class Instruction(NamedTuple):
    name: str
    operands: tuple[str, ...]
    target: int | None  # of a jump, branch or call
    following: int  # address of the next instruction


@dataclass(frozen=True)
class StackBound:
    """The bound in bytes, and the calls that need it."""

    total_bytes: int
    program: tuple[tuple[str, int], ...]  # (function, bytes of its own, return address included), outermost first
    interrupt: tuple[tuple[str, int], ...]

    def as_dict(self) -> dict[str, object]:
        return {"program": dict(self.program), "interrupt": dict(self.interrupt)}


def stack_bound(elf: Path) -> StackBound:
    """The bound of an AVR firmware. InputError if its stack can't be bounded, or avr-objdump is missing."""
    if shutil.which("avr-objdump") is None:
        raise InputError("avr-objdump", "", "not on PATH; install it: apt install binutils-avr")
    command = ["avr-objdump", "-d", "--no-show-raw-insn", str(elf)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise InputError(elf, "", f"can't be disassembled: {done.stderr.strip()}")
    return _Program(elf, done.stdout).bound()


class _Program:
    """The disassembly, and what is known about its functions so far."""

    def __init__(self, elf: Path, disassembly: str) -> None:
        self.elf = elf
        self.names: dict[int, str] = {}
        self.code: dict[int, Instruction] = {}
        self._known: dict[int, tuple[tuple[str, int], ...]] = {}
        self._calls: dict[int, dict[int, int]] = {}
        self._allow_interrupts: set[int] = set()
        lines: list[tuple[int, str, tuple[str, ...], str | None]] = []
        for line in disassembly.splitlines():
            if match := _SYMBOL.match(line):
                self.names.setdefault(int(match[1], 16), match[2])
            elif match := _LINE.match(line):
                operands = tuple(part.strip() for part in (match[3] or "").split(",") if part.strip())
                lines.append((int(match[1], 16), match[2], operands, match[4]))
        for (address, name, operands, _), behind in zip(lines, [*lines[1:], (lines[-1][0] + 2, "", (), None)], strict=True):
            self.code[address] = Instruction(name, operands, _target(address, name, operands), behind[0])

    def bound(self) -> StackBound:
        by_name = {name: address for address, name in self.names.items()}
        if "main" not in by_name:
            raise InputError(self.elf, "main", "no such function: this is not a firmware of this project")
        program = self._deepest(by_name["main"], ())
        entries = {address for name, address in by_name.items() if INTERRUPT.match(name)}
        interrupts = [self._deepest(entry, ()) for entry in entries]
        for entry in entries:
            self._refuse_nesting(entry, entry)
        interrupt = max(interrupts, key=_size, default=())
        return StackBound(_size(program) + _size(interrupt), program, interrupt)

    def _refuse_nesting(self, interrupt: int, function: int) -> None:
        if function in self._allow_interrupts:
            raise InputError(self.elf, self.names.get(interrupt, hex(interrupt)), "allows interrupts in an interrupt")
        for callee in self._calls[function]:
            self._refuse_nesting(interrupt, callee)

    def _deepest(self, entry: int, callers: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """The deepest chain of calls from `entry` on: (name, bytes with the return address) each."""
        if entry in self._known:
            return self._known[entry]
        name = self.names.get(entry, f"0x{entry:x}")
        if entry in callers:
            raise InputError(self.elf, name, "calls itself: its stack has no bound")
        own, calls = self._walk(entry, name)
        best: tuple[tuple[str, int], ...] = ((name, own + RETURN_ADDRESS_BYTES),)
        for callee, depth in calls.items():
            chain = ((name, depth + RETURN_ADDRESS_BYTES), *self._deepest(callee, (*callers, entry)))
            best = max(best, chain, key=_size)
        self._known[entry] = best
        return best

    def _walk(self, entry: int, name: str) -> tuple[int, dict[int, int]]:
        """(deepest stack of the function itself, per callee the deepest stack at its call), return address not counted."""
        deepest: dict[int, int] = {}
        calls: dict[int, int] = {}
        open_paths = [(entry, 0, 0)]
        while open_paths:
            at, depth, frame = open_paths.pop()
            if deepest.get(at, -1) >= depth:
                continue
            deepest[at] = depth
            if depth > LIMIT_BYTES:
                raise InputError(self.elf, name, "pushes in a loop: its stack has no bound")
            if at not in self.code:
                raise InputError(self.elf, name, f"leads to 0x{at:x}, where there is no code")
            instruction = self.code[at]
            kind = instruction.name
            if kind in ENDS:
                continue
            if kind == "sei":
                self._allow_interrupts.add(entry)
            if kind == "ijmp":
                raise InputError(self.elf, name, f"jumps to an unknown place at 0x{at:x}")
            if kind in ("call", "rcall", "icall"):
                if instruction.target == instruction.following:  # the compiler's idiom to make room for two bytes
                    open_paths.append((instruction.following, depth + RETURN_ADDRESS_BYTES, frame))
                    continue
                for callee in self._callees(instruction, name, at):
                    calls[callee] = max(calls.get(callee, 0), depth)
            depth, frame = _moved(instruction, depth, frame)
            if kind in ("jmp", "rjmp"):
                assert instruction.target is not None
                open_paths.append((instruction.target, depth, frame))
                continue
            open_paths.append((instruction.following, depth, frame))
            if kind.startswith("br") and instruction.target is not None:
                open_paths.append((instruction.target, depth, frame))
            elif kind in SKIPS:
                open_paths.append((self.code[instruction.following].following, depth, frame))
        self._calls[entry] = calls
        return max(deepest.values()), calls

    def _callees(self, instruction: Instruction, name: str, at: int) -> list[int]:
        if instruction.target is not None:
            return [instruction.target]
        pattern = INDIRECT.get(name.partition(".")[0])  # the compiler's own copies have a suffix
        callees = [address for address, symbol in self.names.items() if pattern and pattern.match(symbol)]
        if not callees:
            raise InputError(self.elf, name, f"calls an unknown function at 0x{at:x}")
        return callees


def _moved(instruction: Instruction, depth: int, frame: int) -> tuple[int, int]:
    """(depth, what Y has been moved by and the stack pointer not yet) after an instruction."""
    name, operands = instruction.name, instruction.operands
    if name == "push":
        return depth + 1, frame
    if name == "pop":
        return depth - 1, frame
    if name == "in" and operands == ("r28", STACK_POINTER_LOW):
        return depth, 0
    if name in ("sbiw", "adiw") and operands[0] == "r28":
        return depth, frame + int(operands[1], 0) * (1 if name == "sbiw" else -1)
    if name == "subi" and operands[0] == "r28":
        return depth, frame + int(operands[1], 0)
    if name == "sbci" and operands[0] == "r29":
        value = frame + 256 * int(operands[1], 0)
        return depth, value - 0x10000 if value >= 0x8000 else value
    if name == "out" and operands[0] == STACK_POINTER_LOW:
        return depth + frame, 0
    return depth, frame


def _target(address: int, name: str, operands: tuple[str, ...]) -> int | None:
    if not operands:
        return None
    if name in ("jmp", "call"):
        return int(operands[0], 0)
    if operands[-1].startswith("."):  # relative to the next instruction, one word further on
        return address + 2 + int(operands[-1][1:], 10)
    return None


def _size(chain: tuple[tuple[str, int], ...]) -> int:
    return sum(size for _, size in chain)
