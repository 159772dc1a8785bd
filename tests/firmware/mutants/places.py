"""Where the firmware can be changed a little: constants, comparisons, arithmetic, branches, and statements left out.

Of C, assembly and the generator's Python; nothing that is only said (comments, messages, assertions) is changed.
"""

import io
import random
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEFT_OUT = {  # not part of what runs on the chip, or of no meaning there
    "firmware/include/faults.h", "firmware/src/faults.c", "firmware/src/unpack.c", "firmware/src/crc.c",
    "firmware/include/types.h", "firmware/generator/__main__.py", "firmware/generator/__init__.py",
    "firmware/generator/assembly.py",
}  # fmt: skip
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "<<": ">>", ">>": "<<", "&": "|", "+=": "-=", "-=": "+=", "|=": "&=",
}  # fmt: skip
INSTRUCTIONS = {
    "breq": "brne", "brne": "breq", "brlo": "brsh", "brsh": "brlo", "brcs": "brcc", "brcc": "brcs", "brmi": "brpl",
    "brpl": "brmi", "brge": "brlt", "brlt": "brge", "add": "adc", "adc": "add", "sub": "sbc", "sbc": "sub", "subi": "sbci",
    "sbci": "subi", "inc": "dec", "dec": "inc", "lsl": "lsr", "lsr": "lsl", "ror": "lsr", "rol": "lsl", "cpc": "cp",
    "or": "and", "clt": "set", "set": "clt", "com": "neg",
}  # fmt: skip
WRITES = ("sts", "out", "st", "wdr", "sei", "cli", "push", "ldi", "clr", "sbi", "cbi", "rjmp", "rcall")  # may be left out
NUMBER = re.compile(r"(?<![\w.\"<])(0x[0-9A-Fa-f]+|\d+)(?=[uUlL]*\b)(?![\w.]*[fbs]?\")")
C_OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<<|>>|\+=|-=|\|=|<|>|\+|-|&)(?= )")
NO_STATEMENT = r"return\b|const\b|static\b|uint|int|struct\b|register\b|enum\b|break|continue|for\b|\(void"
C_STATEMENT = re.compile(rf"^ {{4,}}(?!{NO_STATEMENT})[\w*(>.\[\]-]+.*;$")
MNEMONIC = re.compile(r"^(?:\d+:)?\s+([a-z]+)\b")


class Mutant(NamedTuple):
    """``before`` stands in the line at ``column`` (from 0) and becomes ``after``."""

    file: str
    line: int  # from 1
    column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        after = self.after if self.after else "(left out)"
        return f"{self.file}:{self.line}: {self.before.strip()} -> {after.strip()}"

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1]
        assert line[self.column : self.column + len(self.before)] == self.before, self
        lines[self.line - 1] = line[: self.column] + self.after + line[self.column + len(self.before) :]
        return "".join(lines)


def sample(root: Path, count: int, seed: int = 0) -> list[Mutant]:
    """So many, drawn evenly from C, assembly and generator, and within those from the files by their number of places."""
    by_kind: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in all_places(root):
        suffix = Path(mutant.file).suffix
        by_kind["C" if suffix in (".c", ".h") else "generator" if suffix == ".py" else "assembly"].append(mutant)
    rng = random.Random(seed)
    drawn = []
    for number, kind in enumerate(sorted(by_kind)):
        drawn += rng.sample(by_kind[kind], min(len(by_kind[kind]), (count + number) // len(by_kind)))
    return drawn


def all_places(root: Path) -> list[Mutant]:
    """In the order of the files."""
    found = []
    for file in sorted((root / "firmware").rglob("*")):
        name = file.relative_to(root).as_posix()
        if name in LEFT_OUT or "/host/" in name or "/platform_system/" in name or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8") if file.suffix in (".c", ".h", ".S", ".inc", ".py") else ""
        if file.suffix == ".py":
            found += _in_python(name, text)
        elif text:
            found += _in_lines(name, text, is_assembly=file.suffix in (".S", ".inc"))
    return found


def _in_lines(name: str, text: str, *, is_assembly: bool) -> Iterator[Mutant]:
    in_comment = False
    for number, whole in enumerate(text.splitlines(), 1):
        code, in_comment = _without_comments(whole, in_comment)
        stripped = code.strip()
        if not stripped or stripped.startswith(
            ("#include", "#ifndef", "#if", "#el", "#error", "#pragma", "_Static_assert", ".")
        ):
            continue
        for match in NUMBER.finditer(code):
            if not (is_assembly and re.match(r"\s*(\d+:|\.)", code[: match.end()] + ":")) and not re.search(
                r"\br$", code[: match.start()]
            ):
                yield Mutant(name, number, match.start(), match[0], _next(match[0]))
        if is_assembly:
            if (match := MNEMONIC.match(code)) is not None:
                if match[1] in INSTRUCTIONS:
                    yield Mutant(name, number, match.start(1), match[1], INSTRUCTIONS[match[1]])
                if match[1] in WRITES:
                    yield Mutant(name, number, match.start(1), code[match.start(1) :].rstrip(), "nop")
            continue
        for match in C_OPERATOR.finditer(code):
            yield Mutant(name, number, match.start(), match[0], OPERATORS[match[0]])
        if C_STATEMENT.match(code.rstrip()):
            begin = len(code) - len(code.lstrip())
            yield Mutant(name, number, begin, code.strip(), ";")


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """The line with its comments blanked, and whether one goes on."""
    out, place = [], 0
    while place < len(line):
        if inside:
            end = line.find("*/", place)
            stop = len(line) if end < 0 else end + 2
            out.append(" " * (stop - place))
            place, inside = stop, end < 0
        else:
            begin = line.find("/*", place)
            stop = len(line) if begin < 0 else begin
            out.append(line[place:stop])
            place, inside = stop, begin >= 0
    return "".join(out), inside


def _next(number: str) -> str:
    value = int(number, 0) + 1
    return f"0x{value:X}" if number.startswith("0x") else str(value)


def _in_python(name: str, text: str) -> Iterator[Mutant]:
    skipped = 0  # the line up to which a statement is not changed
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for previous, token in zip([tokens[0], *tokens], tokens, strict=False):
        starts = previous.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
        if (
            starts
            and token.type == tokenize.NAME
            and token.string in ("assert", "raise", "import", "from", "class", "def", "print")
        ):
            skipped = _statement_end(tokens, token)
        (line, column), kind = token.start, token.type
        if line <= skipped:
            continue
        if kind == tokenize.NUMBER and token.string.isdecimal():
            yield Mutant(name, line, column, token.string, _next(token.string))
        elif (
            kind == tokenize.OP
            and token.string in OPERATORS
            and token.string not in ("|=", "-")
            and previous.string not in "(=[,"
        ):
            yield Mutant(name, line, column, token.string, OPERATORS[token.string])
        elif kind == tokenize.STRING and token.string.strip('"') in INSTRUCTIONS:
            yield Mutant(name, line, column, token.string, f'"{INSTRUCTIONS[token.string.strip(chr(34))]}"')


def _statement_end(tokens: list[tokenize.TokenInfo], first: tokenize.TokenInfo) -> int:
    depth = 0
    for token in tokens[tokens.index(first) :]:
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if token.type == tokenize.NEWLINE and depth == 0:
            return token.start[0]
    return first.start[0]
