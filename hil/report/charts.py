"""The report's pictures: SVG made here, without a library. Colours are the page's CSS classes: they follow light and dark."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

LEFT, RIGHT, TOP, BOTTOM = 52, 22, 8, 38
WIDE = 600  # on a narrow screen wider pictures are scrolled, so that their text can be read
LETTER_PX = 6.3  # of the labels' font, on average


class Series(NamedTuple):
    """A curve: its name and CSS class (`s0` to `s3`), and its points."""

    name: str
    css: str
    x: Sequence[float]
    y: Sequence[float]


class Tile(NamedTuple):
    """A part of a whole: its name, size, and CSS class."""

    name: str
    size: int
    css: str


class _Frame:
    """Axes with round ticks over a range."""

    def __init__(self, size: tuple[int, int], x: tuple[float, float], y: tuple[float, float]) -> None:
        self.width, self.height = size
        self.x_ticks, self.y_ticks = ticks(*x, 7), ticks(*y, 4)
        self.x, self.y = x, (min(y[0], self.y_ticks[0]), max(y[1], self.y_ticks[-1]))

    def px(self, x: float) -> float:
        return LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (self.width - LEFT - RIGHT)

    def py(self, y: float) -> float:
        return self.height - BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - TOP - BOTTOM)

    def drawn(self, content: str, label: str, x_title: str) -> str:
        grid = []
        for tick in self.y_ticks:
            y = self.py(tick)
            grid.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{self.width - RIGHT}"/>')
            grid.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown(tick, self.y_ticks)}</text>')
        base = self.height - BOTTOM
        for tick in self.x_ticks:
            if self.x[0] <= tick <= self.x[1]:
                x = self.px(tick)
                grid.append(f'<path class="axis" d="M{x:.1f} {base}v4"/>')
                grid.append(f'<text x="{x:.1f}" y="{base + 19}" text-anchor="middle">{shown(tick, self.x_ticks)}</text>')
        grid.append(f'<path class="axis" d="M{LEFT} {base}H{self.width - RIGHT}"/>')
        middle = (LEFT + self.width - RIGHT) / 2
        grid.append(f'<text class="title" x="{middle:.0f}" y="{self.height - 3}" text-anchor="middle">{escape(x_title)}</text>')
        return _svg(self.width, self.height, label, "".join(grid) + content)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round values from below `low` to beyond `high`, about `most` of them: multiples of 1, 2 or 5 times a power of ten."""
    span = high - low or abs(high) or 1.0
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def shown(value: float, among: Sequence[float]) -> str:
    """With as many digits as the ticks need."""
    step = among[1] - among[0] if len(among) > 1 else 1.0
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def lines(series: Sequence[Series], *, label: str, x_title: str, size: tuple[int, int] = (960, 260)) -> str:
    """Curves over one axis, from 0 up; the first one is drawn on top."""
    frame = _Frame(
        size,
        (min(min(each.x) for each in series), max(max(each.x) for each in series)),
        (0.0, max(max(each.y) for each in series) or 1.0),
    )
    content = "".join(f'<polyline class="line {each.css}" points="{_points(frame, each)}"/>' for each in reversed(series))
    return frame.drawn(content, label, x_title)


def _points(frame: _Frame, series: Series) -> str:
    return " ".join(f"{frame.px(x):.1f},{frame.py(y):.1f}" for x, y in zip(series.x, series.y, strict=True))


def histogram(values: Sequence[float], *, label: str, x_title: str, size: tuple[int, int] = (316, 190), bins: int = 30) -> str:
    """How often which value came; a single value gets a bar of its own."""
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - max(abs(low) * 0.01, 0.5e-3), high + max(abs(high) * 0.01, 0.5e-3)
    edges = ticks(low, high, 4)
    low, high = edges[0], edges[-1]
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / (high - low) * bins))] += 1
    frame = _Frame(size, (low, high), (0.0, float(max(counts))))
    frame.x_ticks = edges
    width = (frame.px(high) - frame.px(low)) / bins
    bars = "".join(
        f'<path d="M{frame.px(low) + number * width:.1f} {frame.py(0):.1f}V{frame.py(count):.1f}h{max(width - 1, 1):.1f}'
        f'V{frame.py(0):.1f}z"/>'
        for number, count in enumerate(counts)
        if count
    )
    return frame.drawn(f'<g class="bar">{bars}</g>', label, x_title)


def dots(steps: Sequence[Sequence[float]], missing: Sequence[int], *, label: str, x_title: str, limit: float) -> str:
    """The values of each step, any number of them; `missing` steps lack one. The axis begins below the lowest; the limit is
    drawn where it is within twice the highest."""
    values = [value for step in steps for value in step]
    top, bottom = max(values, default=limit), min(values, default=0.0)
    frame = _Frame((960, 220), (0.0, float(max(len(steps), 2))), (bottom, limit if top < limit <= 2 * top else top))
    width = max(1.5, (frame.px(1) - frame.px(0)) * 0.8)
    places = dict.fromkeys(
        f"M{frame.px(number + 0.5) - width / 2:.1f} {frame.py(value):.1f}"
        for number, step in enumerate(steps)
        for value in step
    )
    content = f'<path class="dots" d="{"".join(f"{place}h{width:.1f}" for place in places)}"/>'
    content += "".join(
        f'<path class="missing" d="M{frame.px(step + 0.5):.1f} {frame.height - BOTTOM}V{TOP}"/>' for step in missing
    )
    if limit <= 2 * top:
        y = frame.py(limit)
        content += f'<path class="limit" d="M{LEFT} {y:.1f}H{frame.width - RIGHT}"/>'
        content += f'<text class="limit" x="{frame.width - RIGHT}" y="{y + 14:.1f}" text-anchor="end">limit</text>'
    return frame.drawn(content, label, x_title)


def treemap(tiles: Sequence[Tile], *, label: str, unit: str, size: tuple[int, int] = (960, 300)) -> str:
    """Areas in proportion to sizes, the largest first (squarified: Bruls, Huizing, van Wijk, 2000)."""
    ordered = sorted((tile for tile in tiles if tile.size > 0), key=lambda tile: (-tile.size, tile.name))
    content = []
    for tile, (x, y, width, height) in zip(ordered, _squarified([tile.size for tile in ordered], *size), strict=True):
        content.append(
            f'<g class="{tile.css}"><title>{escape(tile.name)}: {tile.size:,} {unit}</title>'
            f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{max(width - 1, 0.5):.1f}" height="{max(height - 1, 0.5):.1f}"/>'
        )
        if height > 18 and width > LETTER_PX * len(tile.name) + 10:
            content.append(f'<text x="{x + 6:.1f}" y="{y + 15:.1f}">{escape(tile.name)}</text>')
            if height > 34:
                content.append(f'<text class="size" x="{x + 6:.1f}" y="{y + 30:.1f}">{tile.size:,} {unit}</text>')
        content.append("</g>")
    return _svg(*size, label, "".join(content), css="treemap")


def _squarified(sizes: Sequence[int], width: float, height: float) -> list[tuple[float, float, float, float]]:
    """A rectangle (x, y, width, height) for each size, in their order (largest first)."""
    scale = width * height / sum(sizes) if sizes else 0.0
    areas = [size * scale for size in sizes]
    found: list[tuple[float, float, float, float]] = []
    x = y = 0.0
    while areas:
        side = min(width, height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(areas[:count], side):
            count += 1
        row, areas = areas[:count], areas[count:]
        depth = sum(row) / side
        along = 0.0
        for area in row:
            length = area / depth
            found.append((x, y + along, depth, length) if height <= width else (x + along, y, length, depth))
            along += length
        if height <= width:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """The highest ratio of a rectangle's sides, where these areas share a side of this length."""
    total = sum(row)
    return max(max(side * side * area / total**2, total**2 / (side * side * area)) for area in row)


def bar(tiles: Sequence[Tile], whole: int, *, label: str, unit: str) -> str:
    """One bar that shows parts of a whole; what is left is free."""
    width, height = 960, 26
    content, x = [f'<rect class="free" x="0" y="0" width="{width}" height="{height}" rx="4"/>'], 0.0
    for tile in tiles:
        length = tile.size / whole * width
        content.append(
            f'<g class="{tile.css}"><title>{escape(tile.name)}: {tile.size:,} {unit}</title>'
            f'<rect x="{x:.1f}" y="0" width="{max(min(length, width - x) - 1, 0.5):.1f}" height="{height}"/></g>'
        )
        x = min(x + length, width)
    return _svg(width, height, label, "".join(content), css="stack")


def _svg(width: int, height: int, label: str, content: str, css: str = "chart") -> str:
    css += " wide" if width > WIDE else ""
    return f'<svg class="{css}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{content}</svg>'
