"""The curves of claims over the number of finished rows, as SVG: both axes logarithmic."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 40, 50
COLOURS = {"stock": "#c0392b", "tuned": "#2471a3"}
DASHES = ("", "6 4", "2 3", "10 3 2 3")


def draw(rows: list[dict[str, Any]], *, title: str) -> str:
    """Return a picture with a line for each kind of claim, length of queue and set of indexes."""
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in rows:
        if row["unit"] != "ms":
            continue
        kind = f"{row['what']}, {row['queued']:,} queued"
        for indexes in COLOURS:
            lines.setdefault((kind, indexes), []).append((row["finished"], row[indexes]))
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - math.log10(xs[0])) / max(1e-9, math.log10(xs[-1]) - math.log10(xs[0]))
        up = (math.log10(y) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}: one claim, milliseconds, over finished rows</text>'
    ]
    for power in range(low, high + 1):
        _, y = place(xs[0], 10**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for x in xs:
        across, _ = place(x, 10**low)
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x:,}</text>')
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    for number, ((kind, indexes), points) in enumerate(lines.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in sorted(points)))
        style = f'stroke="{COLOURS[indexes]}" stroke-dasharray="{DASHES[kinds.index(kind) % len(DASHES)]}"'
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="2" {style}/>')
        y = TOP + 18 * number
        parts.append(
            f'<line x1="{WIDTH - RIGHT + 15}" x2="{WIDTH - RIGHT + 45}" y1="{y}" y2="{y}" stroke-width="2" {style}/>'
        )
        parts.append(
            f'<text x="{WIDTH - RIGHT + 52}" y="{y + 4}">{escape(kind.removeprefix("claim, "))}, {indexes}</text>'
        )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
