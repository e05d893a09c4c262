"""`Compose`: transforms one after the other, on a single image as one program."""

from __future__ import annotations

import copy
import os
import textwrap
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.experimental.torchvision._classes import (
    DALI_CLASSES,
    MODULE,
    THEIRS,
    Transform,
    own_random_values,
)
from headrace.experimental.torchvision._dispatch import check_values
from headrace.experimental.torchvision._fusion import MAKES_TENSORS, STEPS
from headrace.experimental.torchvision._inputs import (
    as_array,
    as_tensor,
    is_array_image,
    tv_tensors,
)
from headrace.experimental.torchvision._program import ImageProgram, Spread, one_by_one

_CONTAINERS = ("Compose", "RandomApply", "RandomChoice", "RandomOrder")
_LONGEST = 200
Place = Callable[[ImageProgram], torch.Tensor | None]
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
"""By process and number of threads: a forked process has none of its parent's threads."""


def _pool(count: int) -> ThreadPoolExecutor:
    key = os.getpid(), count
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(count, thread_name_prefix="headrace-torchvision")
    return _pools[key]


class Compose(Transform, THEIRS.Compose):  # type: ignore[misc, name-defined]
    """Transforms one after the other.

    A sample with one image, of bytes, goes through as one program: no pixel is touched before all
    random values are drawn. Samples with several images, boxes, masks or key points, and transforms
    that a program does not know, go step by step; values are the same.

    Parameters
    ----------
    transforms : sequence of callables
        What to do, in this order; `op_list` is DALI's name of it.
    batch_size : int
        Samples of `map` that wait for their pixels at a time.
    num_threads : int
        Threads for the samples of `map`, and the images of one tensor; by default that of the
        caller alone.
    seed : int
        Begins random values of its own. By default they are PyTorch's, of `torch.manual_seed`.
    values : str
        "torchvision", or "dali" for what DALI's transforms of this name make of an image; it is
        that of all `transforms` that have the argument, and of those within them.
    """

    def __init__(
        self,
        transforms: Sequence[Callable[..., Any]] | None = None,
        batch_size: int = 16,
        num_threads: int = 1,
        *,
        seed: int = -1,
        values: str = "torchvision",
        op_list: Sequence[Callable[..., Any]] | None = None,
        **pipeline: Any,
    ) -> None:
        if pipeline:
            raise ArgumentTypeError(
                f"`Compose` has no argument `{next(iter(pipeline))}`: it is a pipeline's, and this "
                "is a function that is called sample by sample. `batch_size`, `num_threads` and "
                "`seed` are what it has besides `transforms`."
            )
        for name, value in (("batch_size", batch_size), ("num_threads", num_threads)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentValueError(
                    f"`{name}` of `Compose` is {value!r}; it has to be 1 or more."
                )
        given = op_list if transforms is None else transforms
        if check_values(values) != "torchvision" and isinstance(given, Sequence):
            given = [_with_values(step, values) for step in given]
        super().__init__(given)
        self._batch_size, self._num_threads = batch_size, num_threads
        if seed >= 0:
            self._seed = seed

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample."""
        if torch.compiler.is_compiling():
            return THEIRS.Compose.forward(self, *inputs)
        return self._drawn(inputs).result(self.spread)

    def map(self, samples: Iterable[Any]) -> list[Any]:
        """Transform many samples, each with its own random values, and of its own size.

        Random values are drawn in the order of the samples; pixels are made by `num_threads`.
        """
        runs: list[Run] = []
        begin = 0
        for sample in samples:
            runs.append(self._drawn(sample if isinstance(sample, tuple) else (sample,)))
            if len(runs) - begin == self.at_once:
                self.spread(lambda k: runs[k].finish(), range(begin, len(runs)))
                begin = len(runs)
        self.spread(lambda k: runs[k].finish(), range(begin, len(runs)))
        return [run.result() for run in runs]

    def to_pipeline(self, reader: Any, *, show: bool = True, **options: Any) -> Any:
        """Write the definition of a pipeline that does the same, and print it.

        Values are those that operators have, of ``values="dali"``; random values are drawn by
        the pipeline's operators, with its `seed`.

        Parameters
        ----------
        reader : path, ImageFolder or function
            Where images come from: a folder with a sub-folder for each class, or a function that is
            called in the definition and returns decoded images, and what belongs to them.
        show : bool
            Print the program.
        options
            Arguments of `headrace.pipeline_def`: ``batch_size``, ``num_threads``, ``device_id``,
            ``seed``, ...

        Returns
        -------
        function
            The definition, which is called to have a pipeline. Its program is its ``text``.

        Raises
        ------
        NotYetSupportedError
            If no operator does what a transform does.
        """
        from headrace.experimental.torchvision._to_pipeline import write_pipeline

        made = write_pipeline(self.transforms, reader, options)
        if show:
            print(made.text)  # noqa: T201
        return made

    def program(self, *inputs: Any) -> ImageProgram | None:
        """Draw random values for a sample and return what is wanted of its image.

        Returns `None` if the sample, or the last of the transforms, is done step by step.
        """
        return self._drawn(inputs).program

    def _drawn(self, inputs: tuple[Any, ...]) -> Run:
        run = Run(inputs)
        if self._seed >= 0:
            with own_random_values(self):
                run.go(self.transforms)
        else:
            run.go(self.transforms)
        return run

    @property
    def at_once(self) -> int:
        """Samples that wait for their pixels."""
        return 1 if self._num_threads == 1 else self._batch_size

    def spread(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Call a function with all numbers, in `num_threads`."""
        if self._num_threads == 1 or len(numbers) == 1:
            one_by_one(work, numbers)
        else:
            list(_pool(self._num_threads).map(work, numbers))


Compose.__module__ = MODULE


def _with_values(step: Any, values: str) -> Any:
    """A copy of a transform, and of those in it, with other values."""
    if not isinstance(step, Transform):
        return step
    step = copy.copy(step)
    if type(step).__name__ in DALI_CLASSES:
        step._values = values
    if type(step).__name__ in _CONTAINERS:
        step.transforms = [_with_values(each, values) for each in step.transforms]
    return step


class Run:
    """One sample on its way through transforms."""

    _step: Any = None

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self._several = len(inputs) > 1
        self._sample: Any = inputs if self._several else inputs[0]
        self._flat: list[Any] = []
        self._spec: Any = None
        self._at = 0
        self._array: np.ndarray | None = None
        self.program: ImageProgram | None = None
        self._begin()

    def _begin(self) -> None:
        """Look for the one image that a program can take."""
        sample = self._sample
        if isinstance(sample, PIL.Image.Image | torch.Tensor | np.ndarray):
            self._flat, self._spec, self._at = [sample], None, 0
        else:
            self._flat, self._spec = tree_flatten(sample)
            at = _image_of(self._flat)
            if at is None:
                return
            self._at = at
        image = self._flat[self._at]
        self._array = None
        if is_array_image(image, alone=len(self._flat) == 1):
            self._array, image = image, as_tensor(image)
        if ImageProgram.takes(image):
            self.program = ImageProgram(image)

    def _settle(self) -> None:
        """Have the sample as the next transform is to see it."""
        if self.program is not None:
            self._finish(self.program.result())

    def _finish(self, image: Any) -> None:
        self.program = None
        if self._array is not None:
            image = as_array(image, self._array.ndim)
        self._flat[self._at] = image
        self._sample = image if self._spec is None else tree_unflatten(self._flat, self._spec)

    def finish(self, place: Place | None = None, spread: Spread = one_by_one) -> None:
        """Make the image that is wanted, in the memory that `place` has for it."""
        if self.program is not None:
            into = None if place is None or self._array is not None else place(self.program)
            self._finish(self.program.result(spread, into))

    def result(self, spread: Spread = one_by_one) -> Any:
        """The transformed sample."""
        self.finish(spread=spread)
        return self._sample

    def doing(self, steps: Any) -> str:
        """The transform that is at work, in words."""
        text = textwrap.shorten(repr(self._step), _LONGEST)
        for number, step in enumerate(steps):
            if step is self._step:
                return f"transform {number + 1} of {len(steps)}, {text}"
        return f"a transform within others, {text}"

    def go(self, steps: Any) -> None:
        """Go through transforms."""
        steps = list(steps)
        for number, step in enumerate(steps):
            name = type(step).__name__
            self._step = step
            ours = type(step).__module__ == MODULE
            if ours and name in _CONTAINERS and step._seed < 0 and step._device == "cpu":
                self._go_into(step, name)
            elif ours and name in STEPS and self.program is not None and self._takes(step, name):
                program = self.program
                program.becomes_tensor = any(
                    type(later).__name__ in MAKES_TENSORS for later in steps[number + 1 :]
                )
                self._take(program, step, name)
            else:
                self._settle()
                self._sample = step(*self._sample) if self._several else step(self._sample)
                self._begin()

    def _go_into(self, step: Any, name: str) -> None:
        """Do what a container does, with the same random values."""
        if name == "RandomApply" and torch.rand(1) >= step.p:
            return
        steps = step.transforms
        if name == "RandomChoice":
            steps = [steps[int(torch.multinomial(torch.tensor(step.p), 1))]]
        elif name == "RandomOrder":
            steps = [steps[k] for k in torch.randperm(len(steps))]
        self.go(steps)

    def _takes(self, step: Any, name: str) -> bool:
        """False for a step that does something to other parts of the sample, or elsewhere."""
        if step._seed >= 0 or step._device != "cpu" or step._values != "torchvision":
            return False
        # Arrays become tensors for good.
        return self._array is None or name not in ("ToImage", "ToTensor")

    def _take(self, program: ImageProgram, step: Any, name: str) -> None:
        if step._by_chance and torch.rand(1) >= step.p:
            return
        params = step.make_params([program.stand_in]) if step._draws else {}
        if STEPS[name](program, step, params):
            return
        array = self._array
        self._array = None
        self._settle()
        step.check_inputs(self._flat)
        # The parameters are drawn: this image is transformed with them.
        image = step.transform(self._flat[self._at], params)
        self._array = array
        if ImageProgram.takes(image):
            self._flat[self._at] = image
            self.program = ImageProgram(image)
        else:
            self._finish(image)
            self._begin()


def _image_of(flat: list[Any]) -> int | None:
    """The place of the one image among the parts of a sample, if all others are left alone."""
    found, tensors = [], []
    for at, value in enumerate(flat):
        if isinstance(value, PIL.Image.Image | tv_tensors.Image | tv_tensors.Video):
            found.append(at)
        elif isinstance(value, tv_tensors.TVTensor | np.ndarray):
            if not is_array_image(value, alone=False):
                return None
            found.append(at)
        elif isinstance(value, torch.Tensor):
            tensors.append(at)
    if not found:
        return tensors[0] if tensors else None
    # A pure tensor before the image would be taken for one as soon as the image is a tensor, too.
    return found[0] if len(found) == 1 and all(at > found[0] for at in tensors) else None
