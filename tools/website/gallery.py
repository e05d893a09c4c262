"""Examples of operators: programs that run while the site is built, and pictures of their outputs.

`examples/` has the calls of each operator; a frame here says how the data comes.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import html
import shutil
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import draw
import example_files
import numpy as np

FOLDER = "gallery"
"""The folder of pictures on the site, and the page with one of each operator."""

_FRAMES: dict[str, tuple[list[str], str]] = {
    "none": ([], ""),
    "array": (["x = types.Constant(np.float32([[1, 2.7, 3], [4, 5, 6]]))"], ""),
    "labels": (["labels = types.Constant(np.int32([2]))"], "labels"),
    "bytes": (['jpegs, _ = fn.readers.file(files=["cat.jpg"])'], ""),
    "movie": (['encoded, _ = fn.readers.file(files=["clip.mp4"])'], ""),
    "clip": (
        ['frames = fn.readers.video(filenames=["clip.mp4"], sequence_length=5, stride=4)'],
        "frames",
    ),
    "speech": (
        [
            'files, _ = fn.readers.file(files=["speech.ogg"])',
            "audio, rate = fn.decoders.audio(files, downmix=True)",
        ],
        "",
    ),
    "spectrum": (
        [
            'files, _ = fn.readers.file(files=["speech.ogg"])',
            "audio, rate = fn.decoders.audio(files, downmix=True)",
            "spectrum = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)",
        ],
        "",
    ),
}
for _name, _file in {
    "photo": "cat",
    "flower": "flower",
    "dark": "dark",
    "square": "square",
}.items():
    _FRAMES[_name] = (
        [
            f'jpegs, _ = fn.readers.file(files=["{_file}.jpg"])',
            "images = fn.resize(fn.decoders.image(jpegs), resize_shorter=160)",
        ],
        "images",
    )
_SQUARE = _FRAMES["square"][0]
_FRAMES |= {
    "photos": (
        [
            'jpegs, _ = fn.readers.file(file_root="photos")',
            "images = fn.resize(fn.decoders.image(jpegs), size=(120, 160))",
        ],
        "images",
    ),
    "boxes": (
        [
            *_SQUARE,
            "boxes = types.Constant(",
            "    np.float32([[0.31, 0.08, 0.69, 0.61], [0.06, 0.52, 0.9, 0.98]])",
            ")",
            "labels = types.Constant(np.int32([1, 2]))",
        ],
        "images, boxes",
    ),
    "points": (
        [*_SQUARE, "points = types.Constant(np.float32([[68, 51], [90, 51], [80, 80]]))"],
        "images, points",
    ),
    "mask": (
        [
            *_SQUARE,
            'pngs, _ = fn.readers.file(files=["mask.png"])',
            "mask = fn.resize(",
            "    fn.decoders.image(pngs, output_type=types.GRAY),",
            "    resize_shorter=160,",
            "    interp_type=types.INTERP_NN,",
            ")",
        ],
        "images",
    ),
    "polygons": (
        [
            "# of two masks: number, first vertex, end",
            "polygons = types.Constant(np.int32([[0, 0, 3], [1, 3, 7]]))",
            "vertices = types.Constant(",
            "    np.float32([[0, 0], [9, 0], [9, 9], [2, 2], [8, 2], [8, 8], [2, 8]])",
            ")",
        ],
        "",
    ),
}


@dataclass(frozen=True)
class Panel:
    """One call and what came of it: a picture, or text."""

    call: str
    note: str
    picture: bytes | None
    text: str


@dataclass(frozen=True)
class Example:
    """The program that shows an operator, run unless a library is missing."""

    program: str
    panels: list[Panel] = field(default_factory=list)
    missing: str = ""


def groups() -> dict[str, list[str]]:
    """Names of operators by the title of their group."""
    return {title: list(entries) for title, entries in _written().values()}


@functools.cache
def _written() -> dict[int, tuple[str, dict[str, Any]]]:
    found = {}
    for path in (Path(__file__).parent / "examples").glob("*.toml"):
        entries = tomllib.loads(path.read_text())
        found[entries.pop("order")] = (entries.pop("title"), entries)
    return dict(sorted(found.items()))


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    return {name: entry for _, entries in _written().values() for name, entry in entries.items()}


def names() -> list[str]:
    """Every operator that has an example."""
    return list(_entries())


@functools.cache
def example(name: str) -> Example:
    """The example of operator `name`."""
    entry = _entries()[name]
    shown = _shown(entry)
    program = _program(entry, shown)
    if "needs" in entry and not example_files.is_here(entry["needs"]):
        return Example(program, missing=entry["needs"])
    known: dict[str, Any] = {"__name__": "example"}
    try:
        with contextlib.chdir(_folder()):
            exec(compile(program, f"example of fn.{name}", "exec"), known)
        outputs = iter([*known["outputs"]])
        panels = [_panel(call, note, entry.get("draw", ""), outputs) for call, note in shown]
    except Exception as error:
        error.add_note(f"in the example of fn.{name}:\n{program}")
        raise
    return Example(program, panels)


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="headrace-docs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    example_files.write(Path(folder))
    return folder


def _shown(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """What the program returns, with a note on it: the input, and each call."""
    given = _FRAMES[entry.get("frame", "photo")][1]
    notes = entry.get("notes", {})
    calls = [(call, notes.get(str(k), "")) for k, call in enumerate(entry["calls"])]
    return [(given, "Before."), *calls] if given else calls


def _program(entry: dict[str, Any], shown: list[tuple[str, str]]) -> str:
    lines = ["from headrace import fn, pipeline_def, types"]
    if "program" in entry:
        body = entry["program"].strip().splitlines()
    else:
        inside = [*_FRAMES[entry.get("frame", "photo")][0], *entry.get("lines", [])]
        calls = [call for call, _ in shown]
        returned = [f"return {calls[0]}"]
        if len(calls) > 1:
            returned = ["return (", *(f"    {call}," for call in calls), ")"]
        before = entry.get("before", [])
        batch = entry.get("batch", 3 if entry.get("frame") == "photos" else 1)
        body = [
            *before,
            *(["", ""] if before else []),
            f"@pipeline_def(batch_size={batch}, num_threads=2, device_id=None, seed=1)",
            "def example():",
            *(f"    {line}" for line in [*inside, *returned]),
            "",
            "",
            "outputs = example().run()",
        ]
    text = "\n".join(body)
    if "types." not in text:
        lines = ["from headrace import fn, pipeline_def"]
    others = [*(["import numpy as np"] if "np." in text else []), *entry.get("imports", [])]
    gap = [""] if body[0].startswith(("@", "def ")) else []
    return "\n".join([*others, *([""] if others else []), *lines, "", *gap, *body]) + "\n"


def _panel(call: str, note: str, how: str, outputs: Any) -> Panel:
    parsed = ast.parse(call, mode="eval").body
    count = len(parsed.elts) if isinstance(parsed, ast.Tuple) else 1
    taken = [next(outputs) for _ in range(count)]
    picture, text = _drawn(taken, how)
    return Panel(call, note, picture, text)


def _drawn(taken: list[Any], how: str) -> tuple[bytes | None, str]:
    """A picture of the first of `taken`, with what the second says about it, or text."""
    batch = taken[0].as_cpu() if hasattr(taken[0], "as_cpu") else taken[0]
    samples = [np.asarray(batch.at(k)) for k in range(len(batch))]
    layout = batch.layout()
    first = samples[0]
    if how == "histogram":
        return draw.histogram(first), ""
    if how == "flow" and first.shape[-1] == 2:
        return draw.encoded(draw.flow(first)), ""
    if layout in ("ft", "tf"):
        return draw.spectrogram(first, layout), ""
    if first.ndim == 1 and first.size > 500 and first.dtype.kind == "f":
        return draw.signal(first), ""
    pictures = [draw.image(sample, layout) for sample in samples]
    if first.size < 64 or any(p is None for p in pictures):
        return None, "\n".join(_text(sample) for sample in samples)
    if len(taken) > 1:
        about = np.asarray(taken[1].at(0))
        mark = draw.boxes if about.shape[-1] == 4 else draw.points
        pictures = [mark(pictures[0], about)]
    return draw.encoded(draw.strip(pictures)), ""


def _text(sample: np.ndarray) -> str:
    if sample.dtype.kind in "OU":  # side data
        return repr(sample.item())
    shown = np.array2string(sample, precision=3, suppress_small=True, threshold=40)
    return f"{shown}  {sample.dtype}" if sample.ndim < 2 else f"{shown}\n{sample.dtype}"


def section(name: str) -> list[str]:
    """Markdown of the example of an operator, for its page."""
    shown = example(name)
    lines = ["", "## Example", "", '<div class="shown" markdown>', ""]
    for number, panel in enumerate(shown.panels):
        lines += _figure(panel, f"../{picture_name(name, number)}")
    return [*lines, "</div>", "", "```python", *shown.program.splitlines(), "```"]


def _figure(panel: Panel, address: str) -> list[str]:
    caption = f"<code>{html.escape(panel.call)}</code> {html.escape(panel.note)}".strip()
    if panel.picture is None:
        text = html.escape(panel.text)
        return [f"<figure><pre>{text}</pre><figcaption>{caption}</figcaption></figure>", ""]
    alt = html.escape(panel.note or panel.call, quote=True).replace("[", "(").replace("]", ")")
    return [
        '<figure markdown="span">',
        f"![{alt}]({address}){{ loading=lazy }}",
        f"<figcaption>{caption}</figcaption>",
        "</figure>",
        "",
    ]


def page() -> str:
    """The gallery: of each operator that has pictures, the one that shows it best."""
    lines = [
        "# Gallery",
        "",
        "What operators do to a photograph, a clip or a recording. Each picture leads to the page",
        "of its operator, with more of them, argument by argument, and the program that made them.",
        "",
        "![The photograph before](fn.resize-0.png){ loading=lazy }",
    ]
    for title, members in groups().items():
        shown = {name: number for name in members if (number := _best(name)) is not None}
        if not shown:
            continue
        lines += ["", f"## {title}", "", '<div class="shown gallery" markdown>', ""]
        for name, number in shown.items():
            file = picture_name(name, number).removeprefix(f"{FOLDER}/")
            lines += [
                '<figure markdown="span">',
                f"[![fn.{name}]({file}){{ loading=lazy }}](../reference/fn.{name}.md)",
                f"<figcaption markdown>[`fn.{name}`](../reference/fn.{name}.md)</figcaption>",
                "</figure>",
                "",
            ]
        lines.append("</div>")
    return "\n".join(lines) + "\n"


def _best(name: str) -> int | None:
    """The number of the picture of an operator for the gallery: the second that there is of it."""
    pictured = [k for k, panel in enumerate(example(name).panels) if panel.picture is not None]
    given = bool(pictured) and example(name).panels[0].note == "Before."
    wanted = _entries()[name].get("best", 1 if given else 0)
    return next((k for k in pictured if k >= wanted), None)


def picture_name(name: str, number: int) -> str:
    """The file of a picture, on the site."""
    return f"{FOLDER}/fn.{name}-{number}.png"


def pictures() -> dict[str, bytes]:
    """Every picture by its file's name on the site."""
    return {
        picture_name(name, number): panel.picture
        for name in names()
        for number, panel in enumerate(example(name).panels)
        if panel.picture is not None
    }
