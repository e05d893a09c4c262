"""Drawings of graphs as pixels, for where SVG is not shown."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from headrace.cli.graph_drawing import LIGHT
from headrace.kernels.cpu.opencv import cv2

_SCALE = 2
"""Pixels for a unit of the drawing."""
_STEPS = 24
"""Lines that a curve is made of."""


def pixels_of(svg: str) -> np.ndarray:
    """RGB pixels, uint8 ``(height, width, 3)``, of a drawing of `graph_drawing`."""
    root = ElementTree.fromstring(svg)
    width, height = (round(float(root.attrib[name]) * _SCALE) for name in ("width", "height"))
    picture = np.full((height, width, 3), _color("paper"), np.uint8)
    for element in root:
        kind = element.tag.rpartition("}")[2]
        kinds = element.attrib.get("class", "").split()
        if kind == "rect" and "band" in kinds:
            _rectangle(picture, element, _color("band"), None)
        elif kind == "path":
            _curve(picture, element.attrib["d"], "argument" in kinds)
        elif kind == "text":
            _text(picture, element, kinds)
        elif kind == "g":
            edge = "accent" if "merged" in kinds else "line" if "output" in kinds else None
            for part in element:
                if part.tag.endswith("rect"):
                    _rectangle(picture, part, _color(kinds[0]), _color(edge) if edge else None)
                else:
                    _text(picture, part, part.attrib.get("class", "").split())
    return picture


def _color(name: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(LIGHT[name][1:])
    return red, green, blue


def _rectangle(
    picture: np.ndarray,
    element: ElementTree.Element,
    fill: tuple[int, int, int],
    edge: tuple[int, int, int] | None,
) -> None:
    x, y, width, height, radius = (
        round(float(element.attrib.get(name, 0)) * _SCALE)
        for name in ("x", "y", "width", "height", "rx")
    )
    inner, outer = (x + radius, y + radius), (x + width - radius, y + height - radius)
    corners = [
        (outer[0], outer[1], 0),
        (inner[0], outer[1], 90),
        (inner[0], inner[1], 180),
        (outer[0], inner[1], 270),
    ]
    angles = np.linspace(0, np.pi / 2, 9)
    outline = np.array(
        [
            (
                cx + radius * np.cos(a + np.deg2rad(begin)),
                cy + radius * np.sin(a + np.deg2rad(begin)),
            )
            for cx, cy, begin in corners
            for a in angles
        ]
    )
    points = np.rint(outline).astype(np.int32)[None]
    cv2().fillPoly(picture, points, fill, cv2().LINE_AA)
    if edge is not None:
        cv2().polylines(picture, points, True, edge, 3, cv2().LINE_AA)


def _curve(picture: np.ndarray, path: str, dashed: bool) -> None:
    numbers = [float(number) for number in re.findall(r"-?[0-9.]+", path)]
    corners = np.array(numbers).reshape(-1, 2) * _SCALE
    t = np.linspace(0, 1, _STEPS + 1)[:, None]
    for k in range(0, len(corners) - 1, 3):
        a, b, c, d = corners[k : k + 4]
        curve = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t**2 * (1 - t) + d * t**3
        points = np.rint(curve).astype(np.int32)
        for n in range(0, _STEPS, 2 if dashed else 1):
            ends = tuple(points[n].tolist()), tuple(points[n + 1].tolist())
            cv2().line(picture, *ends, _color("line"), 3, cv2().LINE_AA)


def _text(picture: np.ndarray, element: ElementTree.Element, kinds: list[str]) -> None:
    text = (element.text or "").replace("\u00b7", "-").encode("ascii", "replace").decode()
    small = bool({"soft", "merged"} & {*kinds})
    size = (0.38 if small else 0.42 if "band" in kinds else 0.46) * _SCALE
    font, thick = cv2().FONT_HERSHEY_SIMPLEX, 1 if small else 2
    (width, _), _ = cv2().getTextSize(text, font, size, thick)
    x, y = (float(element.attrib[name]) * _SCALE for name in ("x", "y"))
    left = x if "band" in kinds else x - width / 2
    color = "accent" if "merged" in kinds else "soft" if {"soft", "band"} & {*kinds} else "ink"
    place = (round(left), round(y))
    cv2().putText(picture, text, place, font, size, _color(color), thick, cv2().LINE_AA)
