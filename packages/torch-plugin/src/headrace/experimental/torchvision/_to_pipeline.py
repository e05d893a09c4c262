"""`Compose.to_pipeline`: the pipeline's definition that does what transforms do, as a program."""

from __future__ import annotations

import itertools
import json
import linecache
import numbers
import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from headrace.errors import ArgumentTypeError, ArgumentValueError, NotYetSupportedError
from headrace.experimental.torchvision._resize import check_interpolation

_FILTERS = {
    "nearest": "types.INTERP_NN",
    "bilinear": "types.INTERP_LINEAR",
    "bicubic": "types.INTERP_CUBIC",
    "lanczos": "types.INTERP_LANCZOS3",
}
_LONGEST = 100
_DEGREES = 360
_INDENT = "    "
_COIN = "fn.random.coin_flip(probability={})"
_count = itertools.count(1)

_MIDDLE = '''

def middle(images, size):
    """First row and column of a window of a size."""
    gap = images.shape()[:2] - size
    inside = math.max(gap, 0)
    return (inside + inside // 2 % 2) // 2 - (inside - gap) // 2
'''


class _Writer:
    """The body of a definition, as far as it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.modules = {"fn", "pipeline_def", "types"}
        self.augmenters: list[str] = []
        self.has_middle = self.has_conditions = False
        self.is_tensor = self.is_scaled = self.is_done = False

    def line(self, text: str) -> None:
        self.lines += _wrapped(_INDENT * self.depth, text)

    def images(self, call: str) -> None:
        """Have images be what a call returns."""
        self.line(f"images = {call}")

    def branch(self, probability: float, steps: Sequence[Any]) -> None:
        """Transforms for images that are chosen by chance."""
        self.has_conditions = True
        before = self.is_tensor, self.is_scaled
        self.line(f"if fn.random.coin_flip(probability={_n(probability)}, dtype=types.BOOL):")
        self.depth += 1
        self.steps(steps)
        self.depth -= 1
        if before != (self.is_tensor, self.is_scaled) or self.is_done:
            raise _not_known("`RandomApply` of a transform that changes the type of images")

    def steps(self, steps: Sequence[Any]) -> None:
        """All that transforms do."""
        for step in steps:
            name = type(step).__name__
            write = _STEPS.get(name)
            if write is None:
                raise _not_known(f"`{name}`")
            if self.is_done:
                raise _not_known(f"`{name}` after `Normalize`")
            if self.is_scaled and name not in _OF_FLOATS:
                raise _not_known(f"`{name}` of images of floats")
            if name not in ("Compose", "RandomApply"):
                text = textwrap.shorten(repr(step), 90)
                self.line(f"# {text}")
            write(self, step)

    def finish(self, mean: Sequence[float] = (0.0,), std: Sequence[float] = (1.0,)) -> None:
        """Planes of floats, or of bytes if nothing else was wanted."""
        if self.is_done or not (self.is_tensor or self.is_scaled):
            return
        self.is_done = True
        if not self.is_scaled:
            self.images("fn.transpose(images, perm=[2, 0, 1])")
            return
        levels = [[float(f"{value * 255:.7g}") for value in values] for values in (mean, std)]
        self.images(
            "fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="
            f'"CHW", mean={levels[0]}, std={levels[1]})'
        )


def _wrapped(indent: str, text: str) -> list[str]:
    """A line, or a call with each argument on a line of its own."""
    if len(indent + text) <= _LONGEST or text.startswith(("#", "if")):
        return [indent + text]
    begin = text.index("(", text.index("= ")) + 1
    depth, last, lines = 0, begin, [text[:begin]]
    for at in range(begin, len(text) - 1):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0 and text[at] == ",":
            lines.append(_INDENT + text[last : at + 1].strip())
            last = at + 1
    lines += [_INDENT + text[last:-1].strip() + ",", ")"]
    return [indent + line for line in lines]


def _not_known(what: str) -> NotYetSupportedError:
    known = ", ".join(sorted(_STEPS))
    return NotYetSupportedError(
        f"`to_pipeline` cannot write {what}; it knows {known}. `to_loader` runs all transforms."
    )


def _n(value: Any) -> str:
    """A number as it is written."""
    return f"{float(value):.7g}"


def _range(bounds: Any) -> str:
    """A number, or a draw from a range."""
    low, high = (float(b) for b in bounds)
    if low == high:
        return _n(low)
    return f"fn.random.uniform(range=[{_n(low)}, {_n(high)}])"


def _filter(step: Any) -> str:
    name = check_interpolation(step.interpolation).value
    if name not in _FILTERS:
        raise _not_known(f"`{type(step).__name__}` with the interpolation {name!r}")
    text = "" if name == "bilinear" else f", interp_type={_FILTERS[name]}"
    return text if getattr(step, "antialias", True) else f"{text}, antialias=False"


def _fill(step: Any) -> str:
    fill = step.fill
    if isinstance(fill, dict):
        raise _not_known(f"`{type(step).__name__}` whose `fill` depends on the input")
    if fill is None or fill == 0:
        return ""
    values = [float(v) for v in (fill if isinstance(fill, Sequence) else [fill])]
    return f", fill_values={values}"


def _resize(w: _Writer, step: Any) -> None:
    size, more = step.size, _filter(step)
    if size is not None and not isinstance(size, int) and len(size) == 2:
        w.images(f"fn.resize(images, size={tuple(size)}{more})")
        return
    # As torchvision, which rounds sizes down.
    w.modules.add("math")
    w.line("height, width = images.shape()[0], images.shape()[1]")
    w.line("shorter, longer = math.min(height, width), math.max(height, width)")
    most = step.max_size
    if size is None:
        w.line(f"size = images.shape()[:2] * {most} // longer")
    else:
        shorter = size if isinstance(size, int) else size[0]
        w.line(f"size = images.shape()[:2] * {shorter} // shorter")
        if most is not None:
            w.line("long = math.max(size[0], size[1])")
            w.line(f"size = math.min(size, size * {most} // long)")
    w.images(f"fn.resize(images, size=size{more})")


def _random_resized_crop(w: _Writer, step: Any) -> None:
    area, ratio = ([float(f"{v:.7g}") for v in pair] for pair in (step.scale, step.ratio))
    w.images(
        f"fn.random_resized_crop(images, size={tuple(step.size)}, random_area={area}, "
        f"random_aspect_ratio={ratio}{_filter(step)})"
    )


def _center_crop(w: _Writer, step: Any) -> None:
    size = tuple(step.size)
    w.modules.add("math")
    w.has_middle = True
    w.images(
        f"fn.slice(images, start=middle(images, {list(size)}), shape={size}, axes=(0, 1), "
        'out_of_bounds_policy="pad")'
    )


def _padded(w: _Writer, step: Any, padding: Any) -> None:
    if step.padding_mode != "constant":
        raise _not_known(f"`{type(step).__name__}` with the padding mode {step.padding_mode!r}")
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = sides * (4 // len(sides)) if len(sides) < 4 else sides
    w.images(
        f"fn.slice(images, start=({-top}, {-left}), shape=images.shape()[:2] + "
        f'[{top + bottom}, {left + right}], axes=(0, 1), out_of_bounds_policy="pad"{_fill(step)})'
    )


def _random_crop(w: _Writer, step: Any) -> None:
    if step.padding is not None:
        _padded(w, step, step.padding)
    height, width = step.size
    policy = f', out_of_bounds_policy="pad"{_fill(step)}' if step.pad_if_needed else ""
    if step.pad_if_needed and step.padding_mode != "constant":
        raise _not_known(f"`RandomCrop` with the padding mode {step.padding_mode!r}")
    w.line(
        f"images = fn.crop(images, crop=({height}, {width}), "
        f"crop_pos_y={_range((0, 1))}, crop_pos_x={_range((0, 1))}{policy})"
    )


def _flip(w: _Writer, step: Any) -> None:
    axis = "horizontal" if type(step).__name__ == "RandomHorizontalFlip" else "vertical"
    other = "" if axis == "horizontal" else ", horizontal=0"
    w.images(f"fn.flip(images, {axis}={_COIN.format(_n(step.p))}{other})")


def _jitter(w: _Writer, step: Any) -> None:
    names = ("brightness", "contrast", "saturation")
    given = [(n, getattr(step, n)) for n in names if getattr(step, n) is not None]
    if step.hue is not None:
        given.append(("hue", [bound * _DEGREES for bound in step.hue]))
    if given:
        arguments = ", ".join(f"{n}={_range(bounds)}" for n, bounds in given)
        w.images(f"fn.color_twist(images, {arguments})")


def _grey(w: _Writer, step: Any) -> None:
    to_grey = "fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)"
    to_rgb = "fn.color_space_conversion(images, image_type=types.GRAY, output_type=types.RGB)"
    if type(step).__name__ == "RandomGrayscale":
        # Of images in colours, which stay so.
        w.has_conditions = True
        w.line(f"if fn.random.coin_flip(probability={_n(step.p)}, dtype=types.BOOL):")
        w.depth += 1
        w.images(to_grey)
        w.images(to_rgb)
        w.depth -= 1
        return
    w.images(to_grey)
    if step.num_output_channels == 3:
        w.images(to_rgb)


def _blur(w: _Writer, step: Any) -> None:
    size = list(step.kernel_size)  # of columns and rows, but DALI's of rows and columns
    if step._values == "dali":
        size.reverse()
    w.images(f"fn.gaussian_blur(images, window_size={size[::-1]}, sigma={_range(step.sigma)})")


def _rotate(w: _Writer, step: Any) -> None:
    name = check_interpolation(step.interpolation).value
    if name not in ("nearest", "bilinear") or step.center is not None:
        raise _not_known(f"`RandomRotation` with {name!r} interpolation, or around a `center`")
    fill = step.fill
    if fill is not None and not isinstance(fill, numbers.Number):
        raise _not_known("`RandomRotation` with several values of `fill`")
    keep = "" if step.expand else ", keep_size=True"
    w.images(
        f"fn.rotate(images, angle={_range(step.degrees)}, interp_type={_FILTERS[name]}"
        f"{keep}, fill_value={_n(fill or 0)})"
    )


def _augment(module: str, call: str) -> Callable[[_Writer, Any], None]:
    def write(w: _Writer, step: Any) -> None:
        w.has_conditions = True
        w.augmenters.append(module)
        numbers_ = {"n": getattr(step, "num_ops", None), "m": getattr(step, "magnitude", None)}
        w.line(f"# with the ranges of magnitudes of headrace.auto_aug.{module}")
        w.images(f"{module}.{call.format(**numbers_)}")

    return write


def _auto_augment(w: _Writer, step: Any) -> None:
    policies = {"imagenet": "image_net", "cifar10": "reduced_cifar10", "svhn": "svhn"}
    policy = policies[step.policy.value]
    _augment("auto_augment", f'auto_augment(images, policy_name="{policy}")')(w, step)


def _to_tensor(w: _Writer, step: Any) -> None:
    w.is_tensor = True


def _to_float_tensor(w: _Writer, step: Any) -> None:
    w.is_tensor = w.is_scaled = True


def _to_dtype(w: _Writer, step: Any) -> None:
    dtype = step.dtype
    if not w.is_tensor:
        return  # PIL images are passed through
    if dtype == (torch.float32 if w.is_scaled else torch.uint8):
        return
    if dtype != torch.float32 or w.is_scaled or not getattr(step, "scale", True):
        raise _not_known(f"`{type(step).__name__}` other than to torch.float32 with `scale`")
    w.is_scaled = True


def _normalize(w: _Writer, step: Any) -> None:
    if not w.is_scaled:
        raise _not_known("`Normalize` of what is not float32 from 0 to 1")
    w.finish(step.mean, step.std)


def _random_apply(w: _Writer, step: Any) -> None:
    w.branch(step.p, step.transforms)


_STEPS: dict[str, Callable[[_Writer, Any], None]] = {
    "AutoAugment": _auto_augment,
    "CenterCrop": _center_crop,
    "ColorJitter": _jitter,
    "Compose": lambda w, step: w.steps(step.transforms),
    "ConvertImageDtype": _to_dtype,
    "GaussianBlur": _blur,
    "Grayscale": _grey,
    "Identity": lambda w, step: None,
    "Normalize": _normalize,
    "PILToTensor": _to_tensor,
    "Pad": lambda w, step: _padded(w, step, step.padding),
    "RandAugment": _augment("rand_augment", "rand_augment(images, n={n}, m={m})"),
    "RandomApply": _random_apply,
    "RandomCrop": _random_crop,
    "RandomGrayscale": _grey,
    "RandomHorizontalFlip": _flip,
    "RandomResizedCrop": _random_resized_crop,
    "RandomRotation": _rotate,
    "RandomVerticalFlip": _flip,
    "Resize": _resize,
    "ToDtype": _to_dtype,
    "ToImage": _to_tensor,
    "ToPureTensor": lambda w, step: None,
    "ToTensor": _to_float_tensor,
    "TrivialAugmentWide": _augment("trivial_augment", "trivial_augment_wide(images)"),
}
_OF_FLOATS = frozenset(
    {
        *("Compose", "ConvertImageDtype", "Identity", "Normalize", "RandomHorizontalFlip"),
        *("RandomVerticalFlip", "ToDtype", "ToImage", "ToPureTensor"),
    }
)


def write_pipeline(transforms: Sequence[Any], reader: Any, options: dict[str, Any]) -> Any:
    """The definition of a pipeline, made of its program, which is its attribute `text`."""
    writer = _Writer()
    names: dict[str, Any] = {}
    rest, first = _reading(reader, names)
    for line in first:
        writer.line(line)
    writer.steps(transforms)
    writer.finish()
    writer.line(f"return images, {rest}")
    if writer.has_conditions:
        options = {**options, "enable_conditionals": True}
    given = "".join(f"{name}={value!r}, " for name, value in options.items()).removesuffix(", ")
    modules = ", ".join(sorted(writer.modules))
    lines = [f"from headrace import {modules}"]
    if writer.augmenters:
        lines.append(f"from headrace.auto_aug import {', '.join(sorted(set(writer.augmenters)))}")
    if names:
        (function,) = names.values()
        lines.append(f"from {function.__module__} import {function.__name__}")
    head = "\n".join(lines) + "\n" + (_MIDDLE if writer.has_middle else "")
    body = "\n".join(writer.lines)
    text = f"{head}\n\n@pipeline_def({given})\ndef pipeline():\n{body}\n"
    return _run(text, names)


def _reading(reader: Any, names: dict[str, Any]) -> tuple[str, list[str]]:
    """The name of what is read besides images, and the lines that read."""
    root = reader
    if not isinstance(reader, str | os.PathLike):
        root = getattr(reader, "root", None)  # of torchvision's folders
    if isinstance(root, str | os.PathLike):
        path = json.dumps(os.fspath(root), ensure_ascii=False)
        files = f"fn.readers.file(file_root={path}, random_shuffle=True, "
        read = f'jpegs, labels = {files}name="reader")'
        return "labels", [read, "images = fn.decoders.image(jpegs)"]
    if not callable(reader):
        raise ArgumentTypeError(
            f"`reader` of `to_pipeline` is a {type(reader).__name__}; it can be a folder with a "
            "sub-folder for each class, an `ImageFolder`, or a function that is called in the "
            "definition and returns decoded images and what belongs to them."
        )
    name = getattr(reader, "__name__", "")
    if not name.isidentifier():
        raise ArgumentValueError(
            "`reader` of `to_pipeline` is a function without a name, which the program could not "
            "call; define it with `def`."
        )
    names[name] = reader
    return "*others", [f"images, *others = {name}()"]


def _run(text: str, names: dict[str, Any]) -> Any:
    """The function `pipeline` of a program, whose lines are known to tracebacks and `inspect`."""
    file = f"<headrace pipeline {next(_count)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    program = text
    for name, function in names.items():
        # Those of the main program, or within another function, cannot be imported.
        program = program.replace(f"from {function.__module__} import {name}\n", "\n")
    space: dict[str, Any] = {"__name__": __name__, **names}
    exec(compile(program, file, "exec"), space)
    made = space["pipeline"]
    made.text = text
    return made
