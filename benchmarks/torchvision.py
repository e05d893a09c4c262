"""Transforms of `headrace.experimental.torchvision` beside torchvision's and DALI's.

    hatch run bench:torchvision                        all of it, some ten minutes on two cores
    hatch run bench:torchvision --case transforms --only Resize --rounds 9
    hatch run bench:torchvision --write                also into RESULTS.md and torchvision.json

All in one process, in turn, with one thread of PyTorch: `transforms` each transform alone, on a PIL
image and on a tensor CHW of 500 x 375; `composites` whole programs; both as the process's processor
time. `loader` is the recipe for ImageNet with two workers, on files: by the processor time of all
processes, with the time of a clock beside it, as others may use the machine. DALI's module only
runs with a PyTorch for CUDA: elsewhere its look for a stream is replaced for the time of the run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import PIL.Image
import torch

from benchmarks.support.processor_time import seconds_of_all
from examples.demo.photographs import photographs, write_dataset
from tests.support.torchvision_beside_cpu import import_torchvision

import_torchvision()

from torch.utils.data import DataLoader  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2 as theirs  # noqa: E402

import headrace.experimental.torchvision as ours  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CASES = ("transforms", "composites", "loader")
RESULTS = Path(__file__).with_name("RESULTS.md")
FIGURES = Path(__file__).with_suffix(".json")
BATCH, WORKERS = 64, 2

Figures = dict[str, dict[str, dict[str, float]]]
"""Microseconds, or samples a second, by case, row and library."""

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "AugMix": lambda lib: lib.AugMix(),
    "AutoAugment": lambda lib: lib.AutoAugment(),
    "CenterCrop": lambda lib: lib.CenterCrop(224),
    "ColorJitter": lambda lib: lib.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "ElasticTransform": lambda lib: lib.ElasticTransform(),
    "FiveCrop": lambda lib: lib.FiveCrop(224),
    "GaussianBlur": lambda lib: lib.GaussianBlur(5, (1.0, 1.0)),
    "GaussianBlur of 23": lambda lib: lib.GaussianBlur(23, (2.0, 2.0)),
    "Grayscale": lambda lib: lib.Grayscale(),
    "PILToTensor": lambda lib: lib.PILToTensor(),
    "Pad": lambda lib: lib.Pad(20),
    "Pad, reflect": lambda lib: lib.Pad(20, padding_mode="reflect"),
    "RandAugment": lambda lib: lib.RandAugment(),
    "RandomAdjustSharpness": lambda lib: lib.RandomAdjustSharpness(2, 1.0),
    "RandomAffine": lambda lib: lib.RandomAffine(20, (0.1, 0.1), (0.9, 1.1)),
    "RandomAffine, bilinear": lambda lib: lib.RandomAffine(20, interpolation=_BILINEAR),
    "RandomAutocontrast": lambda lib: lib.RandomAutocontrast(1.0),
    "RandomChannelPermutation": lambda lib: lib.RandomChannelPermutation(),
    "RandomCrop": lambda lib: lib.RandomCrop(224),
    "RandomCrop, padded": lambda lib: lib.RandomCrop(224, 4),
    "RandomEqualize": lambda lib: lib.RandomEqualize(1.0),
    "RandomErasing": lambda lib: lib.RandomErasing(1.0),
    "RandomGrayscale": lambda lib: lib.RandomGrayscale(1.0),
    "RandomHorizontalFlip": lambda lib: lib.RandomHorizontalFlip(1.0),
    "RandomInvert": lambda lib: lib.RandomInvert(1.0),
    "RandomPerspective": lambda lib: lib.RandomPerspective(0.5, 1.0),
    "RandomPhotometricDistort": lambda lib: lib.RandomPhotometricDistort(),
    "RandomPosterize": lambda lib: lib.RandomPosterize(3, 1.0),
    "RandomResize": lambda lib: lib.RandomResize(200, 300),
    "RandomResizedCrop": lambda lib: lib.RandomResizedCrop(224),
    "RandomResizedCrop, bicubic": lambda lib: lib.RandomResizedCrop(224, interpolation=_BICUBIC),
    "RandomRotation": lambda lib: lib.RandomRotation(30),
    "RandomRotation, bilinear": lambda lib: lib.RandomRotation(30, _BILINEAR),
    "RandomSolarize": lambda lib: lib.RandomSolarize(128, 1.0),
    "RandomVerticalFlip": lambda lib: lib.RandomVerticalFlip(1.0),
    "RandomZoomOut": lambda lib: lib.RandomZoomOut(p=1.0),
    "Resize": lambda lib: lib.Resize(256),
    "Resize, bicubic": lambda lib: lib.Resize(256, _BICUBIC),
    "Resize, larger": lambda lib: lib.Resize(600),
    "Resize, nearest": lambda lib: lib.Resize(256, _NEAREST),
    "ScaleJitter": lambda lib: lib.ScaleJitter((224, 224)),
    "TenCrop": lambda lib: lib.TenCrop(224),
    "ToDtype to floats": lambda lib: lib.ToDtype(torch.float32, scale=True),
    "ToDtype, nothing to do": lambda lib: lib.ToDtype(torch.uint8),
    "ToImage": lambda lib: lib.ToImage(),
    "ToPILImage": lambda lib: lib.ToPILImage(),
    "TrivialAugmentWide": lambda lib: lib.TrivialAugmentWide(),
    "Normalize of floats": lambda lib: lib.Normalize(MEAN, STD),
}
_BILINEAR, _BICUBIC = theirs.InterpolationMode.BILINEAR, theirs.InterpolationMode.BICUBIC
_NEAREST = theirs.InterpolationMode.NEAREST


def _jittered(lib: Any, *first: Any) -> list[Any]:
    return [
        lib.RandomResizedCrop(224),
        lib.RandomHorizontalFlip(),
        lib.ColorJitter(0.4, 0.4, 0.4, 0.1),
        *first,
    ]


def _floats(lib: Any) -> list[Any]:
    return [lib.ToDtype(torch.float32, scale=True), lib.Normalize(MEAN, STD)]


def _recipe(lib: Any, *more: Any) -> Any:
    return lib.Compose(
        [
            lib.RandomResizedCrop(224),
            lib.RandomHorizontalFlip(),
            *more,
            lib.PILToTensor(),
            *_floats(lib),
        ]
    )


def _image() -> PIL.Image.Image:
    chosen = cv2.resize(photographs()["china"], (500, 375), interpolation=cv2.INTER_AREA)
    return PIL.Image.fromarray(chosen)


def _dali() -> Any:
    """DALI's module, where it is installed; else `None`."""
    try:
        from nvidia.dali import types
        from nvidia.dali.experimental import torchvision as module
    except ImportError:
        return None
    if not torch.cuda.is_available():
        types._get_default_stream_for_array = lambda array: None
    return module


def _microseconds(peers: dict[str, Callable[[], Any]], rounds: int, seconds: float) -> Any:
    """Medians of a call, of rounds in turn."""
    found: dict[str, list[float]] = {name: [] for name in peers}
    counts = {}
    for name, call in peers.items():
        call()
        begin = time.perf_counter()
        call()
        counts[name] = max(1, int(seconds / (time.perf_counter() - begin)))
    for number in range(rounds):
        for name in reversed(peers) if number % 2 else peers:
            torch.manual_seed(number)
            call = peers[name]
            begin = time.process_time()
            for _ in range(counts[name]):
                call()
            found[name].append((time.process_time() - begin) / counts[name] * 1e6)
    return {name: round(statistics.median(times), 2) for name, times in found.items()}


def _peers(make: Callable[[Any], Any], sample: Any) -> dict[str, Callable[[], Any]]:
    """Calls of both libraries' transforms with a sample."""
    libraries = {"torchvision": theirs, "Headrace": ours}
    return {name: partial(make(library), sample) for name, library in libraries.items()}


def _with_dali(peers: dict[str, Callable[[], Any]], make: Callable[[Any], Any], image: Any) -> None:
    """Add DALI, if it does this at all."""
    module = _dali()
    if module is None:
        return
    try:
        made = make(module)
        compose = made if isinstance(made, module.Compose) else module.Compose([made])
        compose(image)
    except Exception:
        return
    peers["DALI"] = lambda: compose(image)


def _transforms(args: argparse.Namespace) -> dict[str, Any]:
    image = _image()
    tensor = theirs.functional.pil_to_tensor(image).contiguous()
    found = {}
    for name, make in TRANSFORMS.items():
        if args.only and not any(part in name for part in args.only):
            continue
        for kind, sample in (("PIL", image), ("tensor", tensor)):
            if name == "Normalize of floats":
                sample = tensor / 255
            if kind == "PIL" and (type(sample) is torch.Tensor or name in _OF_TENSORS):
                continue
            if kind == "tensor" and name == "PILToTensor":
                continue
            peers = _peers(make, sample)
            _with_dali(peers, make, sample)
            found[f"{name}: {kind}"] = _microseconds(peers, args.rounds, args.seconds / 10)
    return found


_OF_TENSORS = ("ToDtype to floats", "ToDtype, nothing to do", "RandomErasing", "ToPILImage")


def _composites(args: argparse.Namespace) -> dict[str, Any]:
    image = _image()
    tensor = theirs.functional.pil_to_tensor(image).contiguous()
    batch = torch.stack([tensor.roll(k * 7, -1) for k in range(16)])
    rows = {
        "crop, flip, jitter, normalise: PIL": (
            image,
            lambda lib: lib.Compose([*_jittered(lib, lib.PILToTensor()), *_floats(lib)]),
        ),
        "crop, flip, jitter, normalise: 16 tensors": (
            batch,
            lambda lib: lib.Compose([*_jittered(lib), *_floats(lib)]),
        ),
        "crop, flip, normalise: PIL": (image, _recipe),
        "crop, flip, normalise: tensor": (tensor, _recipe),
        "resize, crop, normalise: PIL": (
            image,
            lambda lib: lib.Compose(
                [lib.Resize(256), lib.CenterCrop(224), lib.PILToTensor(), *_floats(lib)]
            ),
        ),
    }
    found = {}
    for name, (sample, make) in rows.items():
        peers = _peers(make, sample)
        # DALI's has no `ToDtype`, and its colours take no tensors: programs of both have none.
        found[name] = _microseconds(peers, args.rounds, args.seconds)
    plain = {
        "resize, crop, flip: PIL": image,
        "resize, crop, flip: 16 tensors": batch,
    }

    def make(lib: Any) -> Any:
        return lib.Compose([lib.Resize(256), lib.CenterCrop(224), lib.RandomHorizontalFlip()])

    for name, sample in plain.items():
        peers = _peers(make, sample)
        _with_dali(peers, make, sample)
        found[name] = _microseconds(peers, args.rounds, args.seconds)
    return found


def _loader(args: argparse.Namespace, root: Path) -> dict[str, Any]:
    options = {"num_workers": WORKERS, "shuffle": True, "drop_last": True}
    options["persistent_workers"] = True
    found = {}
    for row, more in (
        ("crop, flip, normalise", ()),
        ("crop, flip, jitter, normalise", ((0.4, 0.4, 0.4, 0.1),)),
    ):
        recipes = [_recipe(lib, *(lib.ColorJitter(*m) for m in more)) for lib in (theirs, ours)]
        loaders = {
            "torchvision": DataLoader(ImageFolder(root, recipes[0]), BATCH, **options),
            "Headrace": ours.to_loader(ImageFolder(root), recipes[1], BATCH, **options),
        }
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in loaders}
        for number in range(-1, args.rounds):
            for name in reversed(loaders) if number % 2 else loaders:
                begin = seconds_of_all(), time.perf_counter()
                count = sum(len(labels) for _, labels in loaders[name])
                spent = seconds_of_all() - begin[0], time.perf_counter() - begin[1]
                if number >= 0:  # the first starts workers
                    rates[name].append((count / spent[0], count / spent[1]))
        del loaders
        for way, at in (("processor", 0), ("clock", 1)):
            found[f"{row}: by {way}"] = {
                name: round(statistics.median(pair[at] for pair in pairs), 1)
                for name, pairs in rates.items()
            }
    return found


def tables(figures: Figures) -> str:
    """The figures as tables of Markdown."""
    units = {
        "transforms": "Microseconds of a call of one transform:",
        "composites": "Microseconds of a call of a program:",
        "loader": f"Samples a second of a loader with {WORKERS} workers, batch {BATCH}: "
        "of a second of processors, and of the clock",
    }
    lines = []
    for case, rows in figures.items():
        lines += [units[case], "", "| | torchvision | Headrace | times as fast | DALI |"]
        lines += ["|---|---|---|---|---|"]
        for row, by in rows.items():
            theirs_, mine = by["torchvision"], by["Headrace"]
            times = mine / theirs_ if case == "loader" else theirs_ / mine
            dali = f"{by['DALI']:,.4g}" if "DALI" in by else ""
            lines.append(f"| {row} | {theirs_:,.4g} | {mine:,.4g} | {times:.2f} | {dali} |")
        lines.append("")
    return "\n".join(lines)


_BEGIN, _END = "<!-- figures of torchvision.json -->\n", "<!-- end of torchvision.json -->"


def written(figures: Figures, text: str) -> str:
    """RESULTS.md with these figures in their place."""
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{tables(figures)}\n{_END}{rest.partition(_END)[2]}"


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    """Measure what the command line asks for and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--only", action="append", help="transforms whose names have this in them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round of a program")
    parser.add_argument("--files", type=Path, help="a folder with a sub-folder for each class")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--write", action="store_true", help="write them into RESULTS.md, too")
    args = parser.parse_args()
    figures: Figures = {}
    with _one_thread(), tempfile.TemporaryDirectory() as scratch:
        for case in args.case or CASES:
            if case == "loader":
                root = args.files or write_dataset(Path(scratch) / "photographs", 640)
                figures[case] = _loader(args, root)
            else:
                figures[case] = (_transforms if case == "transforms" else _composites)(args)
    sys.stdout.write(tables(figures))
    target = args.json or (FIGURES if args.write else None)
    if target is not None:
        known = json.loads(FIGURES.read_text()) if args.write and FIGURES.exists() else {}
        kept = {case: {**known, **figures}.get(case) for case in CASES}
        figures = {case: rows for case, rows in kept.items() if rows}
        target.write_text(json.dumps(figures, indent=1) + "\n")
    if args.write:
        RESULTS.write_text(written(figures, RESULTS.read_text()))


if __name__ == "__main__":
    main()
