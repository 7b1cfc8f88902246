"""A plot of two curves on logarithmic axes, written as plain SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 50, 60
COLOURS = ("#1f6feb", "#8b949e")

Point = tuple[float, float]
Scale = Callable[[float], float]


class Curve(Struct):
    """One line of a plot."""

    label: str
    points: Sequence[Point]


def draw(path: Path, title: str, across: str, curves: Sequence[Curve]) -> None:
    """Write the plot of milliseconds against something else."""
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    to_x = _log_scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    low, high = 10 ** math.floor(math.log10(min(ys))), max(ys) * 1.2
    to_y = _log_scale(low, high, HEIGHT - BOTTOM, TOP)
    parts = [
        _text(WIDTH / 2, 24, title, size=16),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, across),
        *_rows(low, high, to_y),
        *_columns(sorted(set(xs)), to_x),
    ]
    for number, curve in enumerate(curves):
        parts += _line(curve, to_x, to_y, COLOURS[number], number)
    path.write_text(_document(parts))


def _log_scale(low: float, high: float, start: float, end: float) -> Scale:
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(value / low) / span


def _rows(low: float, high: float, to_y: Scale) -> list[str]:
    ticks = [
        step * 10**power
        for power in range(math.floor(math.log10(low)), 5)
        for step in (1, 2, 5)
        if low <= step * 10**power <= high
    ]
    rows = []
    for tick in ticks:
        y = to_y(tick)
        line = f'x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"'
        rows.append(f'<line {line} stroke="#8b949e" stroke-opacity="0.3"/>')
        rows.append(_text(LEFT - 8, y + 4, f"{tick:g} ms", anchor="end"))
    return rows


def _columns(values: Sequence[float], to_x: Scale) -> list[str]:
    labels = ((to_x(value), _short(value)) for value in values)
    return [_text(x, HEIGHT - BOTTOM + 20, label) for x, label in labels]


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _line(
    curve: Curve, to_x: Scale, to_y: Scale, colour: str, number: int
) -> list[str]:
    places = [(to_x(x), to_y(y)) for x, y in curve.points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places
    ]
    left, height = LEFT + 16, TOP + 14 + 20 * number
    swatch = f'x="{left}" y="{height - 9}" width="10" height="10"'
    return [
        f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *dots,
        f'<rect {swatch} fill="{colour}"/>',
        _text(left + 16, height, curve.label, anchor="start"),
    ]


def _text(
    x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="#57606a">{text}</text>'


def _document(parts: list[str]) -> str:
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([head, paper, *parts, "</svg>"]) + "\n"
