"""Squirrel's tutorial on DALI, on Headrace: the same programs with `nvidia.dali` replaced.

    hatch run squirrel:example
    hatch run squirrel:example --samples 2000 --batch-size 128 --plots my-plots

A driver's stream goes into `fn.external_source`, images are cropped and rotated, and
`DALIGenericIterator` hands batches to PyTorch. It is asked where batches are best made, whether the
arrays should be NumPy's or CuPy's, how many threads to use, and how transforms by hand compare.
What comes last is not in the tutorial: shards that are read by threads.

Each `# %%` begins a cell for editors that run scripts as notebooks. Plots are drawn to PNG files.
"""

# %% Options
from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from squirrel.driver import MessagepackDriver

from examples.squirrel.imagenette import write_shards
from examples.squirrel.transforms import transformed
from headrace import fn, pipeline_def
from headrace.plugin import squirrel
from headrace.plugin.pytorch import DALIGenericIterator

mpl.use("Agg")
from matplotlib import pyplot

Sample = dict[str, np.ndarray]
Rates = dict[str, float]


def parse_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("squirrel-data"))
    parser.add_argument("--plots", type=Path, default=Path("squirrel-plots"))
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    return parser.parse_args()


# %% The pipeline of the tutorial
@pipeline_def
def tutorial(source: Any, batch: bool, device: str = "cpu") -> Any:
    """Crop and rotate what `source` gives, sample by sample or in batches."""
    images, labels = fn.external_source(
        source=source, num_outputs=2, batch=batch, device=device, cycle="raise"
    )
    images = fn.crop(images, crop=(200, 200))
    return fn.rotate(images, angle=30.0, fill_value=0.0, keep_size=True), labels


@pipeline_def
def native(source: Any) -> Any:
    """The same with a source that knows its fields and makes its batches."""
    images, labels = fn.external_source(source=source)
    images = fn.crop(images, crop=(200, 200))
    return fn.rotate(images, angle=30.0, fill_value=0.0, keep_size=True), labels


# %% What the tutorial does within Squirrel
def as_numpy(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Image and label as NumPy arrays."""
    return np.array(sample["image"], np.float32), np.array(sample["label"])


def as_cupy(sample: Sample) -> Any:
    """Image and label as CuPy arrays."""
    import cupy

    return cupy.array(sample["image"], cupy.float32), cupy.array(sample["label"])


def as_torch(sample: Sample) -> tuple[torch.Tensor, torch.Tensor]:
    """Image and label, transformed by hand."""
    image = torch.from_numpy(np.array(sample["image"], np.float32)).permute(2, 0, 1)
    return transformed(image), torch.from_numpy(np.array(sample["label"]))


def collate(samples: list[Any]) -> tuple[list[Any], list[Any]]:
    """A batch: a list of images and a list of labels."""
    images, labels = zip(*samples, strict=True)
    return list(images), list(labels)


# %% Measuring
def samples_per_second(batches: Callable[[], Iterable[int]]) -> float:
    """How fast an epoch goes, the making of the pipeline included."""
    start = time.perf_counter()
    return sum(batches()) / (time.perf_counter() - start)


def epoch_of(pipe: Any) -> Iterable[int]:
    """Sizes of the batches of an epoch, as PyTorch gets them."""
    for (batch,) in DALIGenericIterator([pipe], ["image", "label"]):
        yield len(batch["label"])


def has_gpu() -> bool:
    """Whether there is CuPy and a GPU for it."""
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.is_available())


def compare(options: argparse.Namespace, float32: Path, uint8: Path) -> dict[str, Rates]:
    """Rates by question and answer."""
    size = options.batch_size

    def stream(convert: Callable[[Sample], Any] = as_numpy, batched: bool = False) -> Any:
        items = MessagepackDriver(str(float32)).get_iter().map(convert)
        return items.batched(size, collation_fn=collate) if batched else items

    def run(definition: Any, *given: Any, threads: int = 2, **more: Any) -> float:
        settings = {"batch_size": size, "num_threads": threads, "device_id": None, **more}
        return samples_per_second(lambda: epoch_of(definition(*given, **settings)))

    def by_hand() -> Iterable[int]:
        for batch in stream(as_torch).batched(size):
            yield len(torch.utils.data.default_collate(batch)[1])

    run(tutorial, stream(), False)  # compiles the kernels
    per_sample = run(tutorial, stream(), False)
    found: dict[str, Rates] = {
        "Where are batches made?": {
            "in the pipeline": per_sample,
            "in Squirrel": run(tutorial, stream(batched=True), True),
        },
        "How many threads?": {
            str(count): run(tutorial, stream(), False, threads=count) for count in options.threads
        },
        "Who transforms?": {
            "PyTorch, by hand": samples_per_second(by_hand),
            "Headrace": per_sample,
        },
        "Who reads the shards?": {
            "Squirrel's stream": per_sample,
            "source, float32": run(native, squirrel.source(float32, ["image", "label"])),
            "source, uint8": run(native, squirrel.source(uint8, ["image", "label"])),
        },
    }
    if has_gpu():
        found["Whose arrays?"] = {
            name: run(tutorial, stream(convert), False, "gpu", device_id=0)
            for name, convert in (("NumPy", as_numpy), ("CuPy", as_cupy))
        }
    return found


# %% Plots
def draw_images(options: argparse.Namespace, folder: Path) -> None:
    """What goes in, and what comes out."""
    source = squirrel.source(folder, ["image", "label"], order="shuffle")
    pipe = native(source, batch_size=5, num_threads=1, device_id=None)
    outputs, _ = pipe.run()
    figure, axes = pyplot.subplots(2, 5, figsize=(10, 4.4), layout="constrained")
    for k, (image, _) in zip(range(5), source.samples(), strict=False):
        axes[0, k].imshow(image)
        axes[1, k].imshow(np.asarray(outputs.at(k)).clip(0, 1))
    for axis, title in zip(axes[:, 0], ("as stored", "cropped, rotated"), strict=True):
        axis.set_ylabel(title)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    figure.savefig(options.plots / "images.png", dpi=100)
    pyplot.close(figure)


def draw_rates(options: argparse.Namespace, rates: dict[str, Rates]) -> None:
    """One chart for each question."""
    figure, axes = pyplot.subplots(
        1, len(rates), figsize=(3.2 * len(rates), 3.6), layout="constrained", sharey=True
    )
    for axis, (question, answers) in zip(axes, rates.items(), strict=True):
        bars = axis.bar(list(answers), list(answers.values()), color="tab:blue")
        axis.bar_label(bars, fmt="{:,.0f}")
        axis.set_title(question)
        axis.margins(y=0.1)
        axis.tick_params(axis="x", rotation=20)
    axes[0].set_ylabel("samples/s")
    figure.savefig(options.plots / "rates.png", dpi=100)
    pyplot.close(figure)


# %% All of it
def main() -> None:
    """Write the data, measure, print, and draw."""
    options = parse_options()
    options.plots.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    float32, uint8 = (
        write_shards(options.folder / dtype, options.samples, options.shards, dtype=dtype)
        for dtype in ("float32", "uint8")
    )
    draw_images(options, float32)
    rates = compare(options, float32, uint8)
    for question, answers in rates.items():
        print(question)
        for answer, rate in answers.items():
            print(f"  {answer:20} {rate:8,.0f} samples/s")
    draw_rates(options, rates)
    print(f"Plots: {options.plots / 'images.png'}, {options.plots / 'rates.png'}")


if __name__ == "__main__":
    main()
