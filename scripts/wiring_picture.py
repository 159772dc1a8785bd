"""The wiring of a crossing on a bench, controller, monitor and all between, as a picture: docs/pictures/wiring.svg.

python scripts/wiring_picture.py [--out FILE.svg]      # pins and lines as docs/controller.md has them
"""

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from streetflow.files import write_whole

WIDTH, HEIGHT = 1180, 904
STEP = 30  # from pin to pin
INK, SOFT, LAMPS, LOOPS, BEAT, POWER = "#1d232b", "#667085", "#b42318", "#175cd3", "#b54708", "#067647"
STYLE = "text{font:14px system-ui,sans-serif;fill:#1d232b}.s{font-size:12px;fill:#667085}.h{font-weight:600}"


class Place(NamedTuple):
    x: float
    y: float


class Box:
    """A part with its name and what it is; pins on its sides, by name."""

    def __init__(self, at: tuple[float, float, float, float], name: str, notes: Sequence[str] = (), colour: str = INK) -> None:
        self.x, self.y, self.width, self.height = at
        self.drawn = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="8" fill="#fff" stroke="{colour}" '
            f'stroke-width="1.6"/>',
            text(self.x + self.width / 2, self.y + 22, name, "h", "middle"),
            *(text(self.x + self.width / 2, self.y + 40 + 16 * n, note, "s", "middle") for n, note in enumerate(notes)),
        ]

    def pin(self, side: str, at: float, name: str) -> Place:
        """A pin `at` so many px from the top of the side `left` or `right`, or from the left of `top` or `bottom`."""
        right, bottom = self.x + self.width, self.y + self.height
        place, label, anchor = {
            "left": (Place(self.x, self.y + at), (self.x + 8, self.y + at + 5), "start"),
            "right": (Place(right, self.y + at), (right - 8, self.y + at + 5), "end"),
            "top": (Place(self.x + at, self.y), (self.x + at, self.y + 18), "middle"),
            "bottom": (Place(self.x + at, bottom), (self.x + at, bottom - 8), "middle"),
        }[side]
        self.drawn.append(text(*label, name, "", anchor))
        self.drawn.append(f'<circle cx="{place.x}" cy="{place.y}" r="3" fill="{INK}"/>')
        return place


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{css}" text-anchor="{anchor}">{escape(words)}</text>'


def wire(colour: str, *places: tuple[float, float], arrow: bool = True, lines: int = 1) -> str:
    """From place to place, at right angles; `lines` above 1: a bundle."""
    way = " ".join(f"{'M' if n == 0 else 'L'}{x} {y}" for n, (x, y) in enumerate(places))
    end = f' marker-end="url(#{colour[1:]})"' if arrow else ""
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{4.5 if lines > 1 else 1.8}"{end}/>'


def across(colour: str, a: Place, b: Place, at_x: float, **how: bool | int) -> str:
    return wire(colour, a, (at_x, a.y), (at_x, b.y), b, **how)  # type: ignore[arg-type]


def picture() -> str:
    """The whole SVG."""
    controller = Box((50, 70, 210, 400), "Controller", ("ATmega328P", "16 MHz crystal"))
    monitor = Box((50, 540, 210, 290), "Monitor", ("ATmega328P", "16 MHz crystal"))
    out = Box((420, 100, 230, 150), "four 74HC595", ("one after the other: QH' to SER",))
    loops = Box((420, 300, 230, 150), "six 74HC165", ("one after the other: QH to SER",))
    watch = Box((420, 570, 230, 150), "four 74HC165", ("one after the other: QH to SER",))
    relay = Box((420, 742, 230, 112), "Relay, 5 V", ("NPN driver, diode across its coil",))
    lamps = Box((880, 130, 240, 140), "Lamps", ("9 signal groups", "red, yellow, green each:", "27 LEDs, 330 Ω each"), LAMPS)
    sensors = Box(
        (880, 300, 240, 150), "Loops and buttons", ("24 lanes, two loops each", "10 kΩ to ground at each input"), LOOPS
    )
    flasher = Box((880, 762, 240, 92), "Flasher", ("555, one red LED an approach", "lit half of each second"), LAMPS)
    drawn: list[str] = []

    def join(colour: str, first: Box, second: Box, pins: Sequence[tuple[str, str, bool]], first_at: float, bend: float) -> None:
        """Three wires between a chip and a chain; whether each leads from the chain."""
        for n, (own, other, back) in enumerate(pins):
            a, b = first.pin("right", first_at + STEP * n, own), second.pin("left", 62 + STEP * n, other)
            drawn.append(across(colour, b, a, bend + 14 * n) if back else across(colour, a, b, bend + 14 * n))

    lamp_pins = [("PD2 latch", "RCLK", False), ("PD3 clock", "SRCLK", False), ("PD4 data", "SER", False)]
    join(LAMPS, controller, out, lamp_pins, 92, 310)
    join(
        LOOPS,
        controller,
        loops,
        [("PB0 load", "SH/LD", False), ("PB1 clock", "CLK", False), ("PB2 data", "QH", True)],
        292,
        310,
    )
    join(INK, monitor, watch, [("PD2 load", "SH/LD", False), ("PD3 clock", "CLK", False), ("PD4 data", "QH", True)], 92, 310)
    shown, seen = out.pin("right", 92, "QA … : lines 0 to 26"), watch.pin("right", 92, "A to H: the same 27")
    drawn.append(wire(LAMPS, shown, (880, shown.y), lines=27))
    drawn.append(wire(LAMPS, (760, shown.y), (760, seen.y), seen, lines=27))
    drawn.append(
        f'<circle cx="760" cy="{shown.y}" r="5" fill="{LAMPS}"/>'
        + text(750, 510, "the monitor sees what the lamps get", "s", "end")
    )
    felt = loops.pin("right", 92, "H … : lines 0 to 47")
    drawn.append(wire(LOOPS, (880, felt.y), felt, lines=48))
    beat, heard = controller.pin("bottom", 34, "PD5"), monitor.pin("top", 34, "PD5")
    drawn += [wire(BEAT, beat, heard), text(94, 510, "heartbeat: an edge every 10 ms", "s")]
    serial = controller.pin("left", 340, "PD0, PD1")
    drawn += [wire(SOFT, (12, serial.y), serial, arrow=False), text(12, serial.y - 8, "serial", "s")]
    button, held = monitor.pin("left", 240, "PD6"), monitor.pin("right", 278, "PD7")
    drawn += [
        wire(SOFT, button, (26, button.y), (26, 866), arrow=False),
        text(12, 886, "button to ground: closes it again", "s"),
    ]
    drawn.append(across(POWER, held, relay.pin("left", 76, "coil"), 338))
    common, rest = relay.pin("right", 62, "held"), relay.pin("right", 92, "at rest")
    drawn.append(wire(POWER, common, (820, common.y), (820, 244), (880, 244)))
    drawn.append(text(830, 600, "the lamps' way to ground", "s"))
    drawn.append(wire(POWER, rest, (880, rest.y)))
    drawn.append(
        text(300, 886, "without power, in reset or hanging the monitor lets its relay go: the crossing flashes red", "s")
    )
    drawn.append(text(50, 34, "The built-in crossing on a bench", "h"))
    drawn.append(text(330, 34, "5 V for all; 100 nF beside each chip; at a street the monitor has its own supply", "s"))
    boxes = "".join("".join(box.drawn) for box in (controller, monitor, out, loops, watch, relay, lamps, sensors, flasher))
    heads = "".join(
        f'<marker id="{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="13" markerHeight="13" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1L10 5L0 9z" fill="{colour}"/></marker>'
        for colour in (INK, SOFT, LAMPS, LOOPS, BEAT, POWER)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="wiring of controller, monitor, lamps and loops"><style>{STYLE}</style><defs>{heads}</defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(drawn)}{boxes}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the wiring of a crossing on a bench.")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/wiring.svg"), metavar="FILE.svg")
    write_whole(parser.parse_args().out, picture().encode())


if __name__ == "__main__":
    main()
