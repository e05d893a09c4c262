"""`to_loader`: PyTorch's `DataLoader`, whose workers run transforms batch by batch.

The order, workers, queues and shared memory are PyTorch's. What is ours goes on in a worker: images
are made where the batch is to be, in memory that the main process sees, and JPEG files of which
a program wants a part are not decoded further. Random numbers of a batch follow from the loader's
generator and the number of the batch alone, so that they are the same with any number of workers,
and an epoch can be resumed.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, get_worker_info
from torch.utils.data._utils.collate import collate, collate_tensor_fn, default_collate_fn_map

from headrace.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, UsageError
from headrace.experimental.torchvision._classes import Transform
from headrace.experimental.torchvision._compose import Compose, Run
from headrace.experimental.torchvision._encoded import open_rgb
from headrace.experimental.torchvision._lending import Lender, Lent
from headrace.experimental.torchvision._program import ImageProgram
from headrace.plugin.pytorch.samples import own_generators


def to_loader(
    dataset: Any,
    compose: Callable[..., Any] | Sequence[Callable[..., Any]],
    batch_size: int = 1,
    num_workers: int = 0,
    **options: Any,
) -> Loader:
    """Load the samples of a data set, transform and collate them, with workers.

    What comes out is what ``DataLoader(dataset, batch_size, num_workers=num_workers, **options)``
    gives for a data set with these transforms, in the same order.

    Parameters
    ----------
    dataset : Dataset
        Its samples are what `compose` takes: images, or structures that contain them. It should
        have no transform of its own. Return ``PIL.Image.open(path)`` as it is, without
        ``convert``, and of a JPEG file only the part that is needed is decoded; `ImageFolder` does
        so.
    compose : Compose or sequence of transforms
        Transforms of this module, of torchvision, and other callables. A ``seed`` of the `Compose`
        begins the loader's `generator`.
    batch_size, num_workers
        As of a `DataLoader`.
    options
        All other arguments of a `DataLoader`: ``shuffle``, ``sampler``, ``batch_sampler``,
        ``collate_fn``, ``drop_last``, ``generator``, ``pin_memory``, ``persistent_workers``,
        ``prefetch_factor``, ``multiprocessing_context``, ``worker_init_fn``, ``timeout``. The
        `generator` decides the order and all random numbers of the samples, in PyTorch, NumPy and
        `random`, whatever `num_workers` is; without it, one is begun from PyTorch's.

    Returns
    -------
    Loader
        A `DataLoader` that also has ``state_dict`` and ``load_state_dict``, of PyTorch's names: a
        loader made with the same arguments goes on with the batch after the last one that was
        given out, to the same pixels.
    """
    return Loader(dataset, compose, batch_size=batch_size, num_workers=num_workers, **options)


_Drawn = tuple[Run, str]
"""A sample whose random values are drawn, and what it is called."""
_SPARE = 3
"""Batches of a worker's that users may hold, beyond those in its queue, before it needs others."""
_WAY_OUT = " Let transforms end with tensors of one size, or give `to_loader` a `collate_fn`."


class _Start(NamedTuple):
    """The place in a run at which an epoch begins, or goes on."""

    generator: torch.Tensor
    sampler: torch.Tensor | None
    epoch: int
    batches: int


class _Indices(list[Any]):
    """Indices of a batch, and what its random numbers follow from."""

    seed: tuple[int, ...]


class _Batches:
    """Indices of batches, as a loader asks for them."""

    start: _Start
    """Of the epoch that begins next."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[_Indices]:
        return self._from(self.start)

    def _from(self, start: _Start) -> Iterator[_Indices]:
        peek = torch.Generator()
        peek.set_state(start.generator)
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=peek)), start.epoch
        for number, indices in enumerate(self._batches):
            if number >= start.batches:
                found = _Indices(indices)
                found.seed = (*seed, number)
                yield found


class Loader(DataLoader[Any]):
    """See `to_loader`, which makes it."""

    _epoch = 0
    _start: _Start | None = None
    _given = 0

    def __init__(self, dataset: Any, compose: Any, **options: Any) -> None:
        if options.get("batch_size") is None and options.get("batch_sampler") is None:
            raise ArgumentValueError(
                "`batch_size` of `to_loader` is None, and transforms run on batches. Give a size, "
                "or for single samples call the `Compose` in the data set."
            )
        self.compose, seed = _composed(compose)
        if options.get("generator") is None:
            options["generator"] = torch.Generator()
            words = torch.empty((), dtype=torch.int64)
            options["generator"].manual_seed(int(words.random_()) if seed < 0 else seed)
        super().__init__(dataset, **options)
        self._batches = _Batches(self.batch_sampler)  # type: ignore[arg-type]
        self._collates_as_usual = options.get("collate_fn") is None

    @property
    def _index_sampler(self) -> Any:
        # What iterators of a `DataLoader` ask.
        if self._is_iterable:
            return super()._index_sampler
        return self._batches

    @property
    def _is_iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    def _get_iterator(self) -> Any:
        # The iterator's own view of this loader: users see their data set and functions.
        inner = copy.copy(self)
        collate_fn = None if self._collates_as_usual else self.collate_fn
        lender = Lender(self.num_workers, (self.prefetch_factor or 1) + _SPARE)
        work = _Work(self.compose, collate_fn, lender)
        vars(inner).update(
            dataset=(_Iterable if self._is_iterable else _Samples)(self.dataset, work),
            collate_fn=partial(_finished, work) if self._is_iterable else _as_is,
            worker_init_fn=partial(_begin, self.worker_init_fn),
        )
        return DataLoader._get_iterator(inner)

    def __iter__(self) -> Any:
        start = self._start
        if start is None or self._given >= 0:  # not just loaded
            start = self._now()
        self._given = start.batches
        self._epoch = start.epoch + 1
        self._start = self._batches.start = start
        self.generator.set_state(start.generator)
        if start.sampler is not None:
            self._own_generator().set_state(start.sampler)
        if self._iterator is not None:  # whose workers stay: else a seed is drawn for new ones
            torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        return self._counted(super().__iter__(), start)

    def _counted(self, batches: Iterator[Any], start: _Start) -> Iterator[Any]:
        for batch in batches:
            if self._start is start:
                self._given += 1
            yield batch
        if self._start is start:
            self._start = None

    def _now(self) -> _Start:
        own = self._own_generator()
        state = own.get_state() if isinstance(own, torch.Generator) else None
        return _Start(self.generator.get_state(), state, self._epoch, 0)

    def _own_generator(self) -> Any:
        """Generator of a sampler of the user's; None if it draws from PyTorch's, else False."""
        sampler: Any = self.sampler
        if self.batch_size is None:
            sampler = getattr(self.batch_sampler, "sampler", self.batch_sampler)
        own = getattr(sampler, "generator", False)
        return False if own is self.generator else own

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was given out.

        Raises
        ------
        UsageError
            If nobody knows how to get there again.
        """
        if self._is_iterable or not self.in_order:
            what = "its data set is iterable" if self._is_iterable else "`in_order` is False"
            raise UsageError(f"A loader cannot be resumed exactly: {what}.")
        if self._own_generator() is None:
            raise UsageError(
                "A loader cannot be resumed exactly: its sampler draws from PyTorch's global "
                "generator. Give the sampler a `generator` of its own."
            )
        start = self._start
        if start is None:
            start = self._now()
        elif self._given >= 0:
            start = start._replace(batches=self._given)
        return {**start._asdict(), "length": len(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there with the next iteration."""
        missing = {*_Start._fields, "length"} - state.keys()
        if missing:
            raise CheckpointError(
                f"`state` has no {', '.join(sorted(missing))}: it is not of a loader's "
                "`state_dict`."
            )
        if state["length"] != len(self):
            raise CheckpointError(
                f"`state` is of a loader with {state['length']} batches, and this one has "
                f"{len(self)}: the data set, `batch_size`, `drop_last` and sampler have to be the "
                "same."
            )
        self._start = _Start(**{name: state[name] for name in _Start._fields})
        self._given = -1


def _composed(compose: Any) -> tuple[Compose, int]:
    """The transforms as one composition without a seed, and its seed."""
    if not isinstance(compose, Compose):
        if not isinstance(compose, Sequence) and not callable(compose):
            raise ArgumentTypeError(
                f"`compose` of `to_loader` is a {type(compose).__name__}; it can be a `Compose` or "
                "a sequence of transforms."
            )
        compose = Compose(compose if isinstance(compose, Sequence) else [compose])
    _check_seeds(compose.transforms)
    seed = compose._seed
    compose = copy.copy(compose)
    compose._seed = -1
    return compose, seed


def _check_seeds(steps: Iterable[Any]) -> None:
    for step in steps:
        if getattr(step, "_seed", -1) >= 0:
            raise ArgumentValueError(
                f"`{type(step).__name__}` has the seed {step._seed}, of which each worker would "
                "draw the same numbers. Leave it out: the loader's `generator` decides."
            )
        if isinstance(step, Transform) and step._contains:
            _check_seeds(step.transforms)


def _as_is(batch: Any) -> Any:
    """The batch, which is made already."""
    return batch


def _finished(work: _Work, drawn: Sequence[_Drawn]) -> Any:
    """The batch of what an iterable data set yielded."""
    return _made(work, len(drawn), drawn)


def _begin(then: Callable[[int], None] | None, worker: int) -> None:
    """Have users see their data set in a worker."""
    info: Any = get_worker_info()
    object.__setattr__(info, "dataset", info.dataset.dataset)
    if then is not None:
        then(worker)


class _Memory:
    """Memory of the images of a batch, from when the first of them is known."""

    def __init__(self, lender: Lender, count: int) -> None:
        self._lender, self._count = lender, count
        self._lent: Lent | None = None
        self._batch: torch.Tensor | None = None

    def place(self, at: int, program: ImageProgram) -> torch.Tensor | None:
        """The place of an image, if it is of the size of others."""
        shape = program.shape
        if shape is None:
            return None
        if self._batch is None:
            wanted = (self._count, *shape), program.dtype
            self._lent = self._lender.take(*wanted)
            self._batch = self._lent.tensor if self._lent is not None else _new_batch(*wanted)
        fits = self._batch.shape[1:] == shape and self._batch.dtype == program.dtype
        return self._batch[at] if fits else None

    def collate(self, tensors: Sequence[torch.Tensor], *, collate_fn_map: Any = None) -> Any:
        """The batch without a copy, if these are the images that lie in it."""
        batch = self._batch
        if batch is not None and len(tensors) == len(batch):
            begin, step = batch.data_ptr(), batch[:1].nbytes
            if all(t.data_ptr() == begin + k * step for k, t in enumerate(tensors)):
                if self._lent is None:
                    return batch
                found = self._lent.batch()
                self._lent = None
                return found
        first = tensors[0]
        plain = first.layout == torch.strided and not first.is_nested and not first.requires_grad
        if plain and first.is_cpu and all(t.shape == first.shape for t in tensors):
            lent = self._lender.take((len(tensors), *first.shape), first.dtype)
            if lent is not None:
                torch.stack([t.as_subclass(torch.Tensor) for t in tensors], out=lent.tensor)
                return lent.batch()
        return collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)

    def close(self) -> None:
        """Give back what is not in a batch, after an error or a copy."""
        if self._lent is not None:
            self._lender.give_back(self._lent)


def _new_batch(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor in memory that the main process sees, in a worker."""
    empty = torch.empty(0, dtype=dtype)
    if get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    size = torch.Size(shape)
    storage = torch.UntypedStorage._new_shared(size.numel() * empty.itemsize)  # type: ignore[no-untyped-call]
    return empty.set_(storage, 0, size)  # type: ignore[call-overload, no-any-return]


class _Work(NamedTuple):
    """Work of workers on samples."""

    compose: Compose
    collate_fn: Callable[[list[Any]], Any] | None
    """The user's."""
    lender: Lender


def _made(work: _Work, count: int, drawn: Iterable[_Drawn]) -> Any:
    """The batch of `count` samples whose random values are drawn."""
    compose, collate_fn, lender = work
    memory = _Memory(lender, count)
    place = memory.place if collate_fn is None else None
    runs: list[_Drawn] = []

    def make(k: int) -> None:
        run, name = runs[k]
        with _located("when the image was made", name):
            run.finish(None if place is None else partial(place, k))

    try:
        for each in drawn:
            runs.append(each)
            if len(runs) % compose.at_once == 0 or len(runs) == count:
                begin = (len(runs) - 1) // compose.at_once * compose.at_once
                compose.spread(make, range(begin, len(runs)))
        samples = [run.result() for run, _ in runs]
        if collate_fn is not None:
            return collate_fn(samples)
        with _located("when a batch was made", f"{runs[0][1]} to {runs[-1][1]}", _WAY_OUT):
            known = {**default_collate_fn_map, torch.Tensor: memory.collate}
            return collate(samples, collate_fn_map=known)
    finally:
        memory.close()


def _drawn(compose: Compose, sample: Any, name: str) -> _Drawn:
    """A sample on its way, and what it is called."""
    with _located("when the image was decoded", name):
        run = Run(sample if type(sample) is tuple and len(sample) > 1 else (sample,))
    with _located(lambda: f"in {run.doing(compose.transforms)}", name):
        run.go(compose.transforms)
    return run, name


class _Samples:
    """A data set of the user's as workers see it: asked for a batch, it makes it."""

    def __init__(self, dataset: Any, work: _Work) -> None:
        self.dataset, self._work = _opened(dataset), work

    def __getitems__(self, indices: _Indices) -> Any:
        with own_generators(*indices.seed):
            names = [_name(self.dataset, k) for k in indices]
            together = getattr(self.dataset, "__getitems__", None)
            if callable(together):
                with _located("in `__getitems__`", f"{names[0]} to {names[-1]}"):
                    samples = together([*indices])
            else:
                samples = (self._sample(*each) for each in zip(indices, names, strict=True))
            named = zip(samples, names, strict=True)
            drawn = (_drawn(self._work.compose, *each) for each in named)
            return _made(self._work, len(names), drawn)

    def _sample(self, index: Any, name: str) -> Any:
        with _located("in `__getitem__`", name):
            return self.dataset[index]


class _Iterable(IterableDataset[Any]):
    """An iterable data set of the user's, and samples on their way."""

    def __init__(self, dataset: Any, work: _Work) -> None:
        self.dataset, self._work = dataset, work

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[_Drawn]:
        kind = type(self.dataset).__name__
        for number, sample in enumerate(self.dataset):
            yield _drawn(self._work.compose, sample, f"sample {number} that `{kind}` yielded")


def _opened(dataset: Any) -> Any:
    """The data set, whose JPEG files are decoded as far as transforms need them."""
    if type(dataset) is Subset:
        dataset = copy.copy(dataset)
        dataset.dataset = _opened(dataset.dataset)
    elif type(dataset) is ConcatDataset:
        dataset = copy.copy(dataset)
        dataset.datasets = [_opened(each) for each in dataset.datasets]
    folder = sys.modules.get("torchvision.datasets.folder")
    if folder is not None and isinstance(dataset, folder.DatasetFolder):
        pillow = (folder.pil_loader, folder.default_loader)
        if dataset.loader in pillow and sys.modules["torchvision"].get_image_backend() == "PIL":
            dataset = copy.copy(dataset)
            dataset.loader = open_rgb
    return dataset


def _name(dataset: Any, index: Any) -> str:
    """A sample in words, with the file it is read from where that is known."""
    kind = type(dataset).__name__
    inner: Any = dataset
    at = index
    try:
        while isinstance(inner, Subset):
            at, inner = inner.indices[at], inner.dataset
        found = inner.samples[at]  # of torchvision's folders
        path = found[0] if isinstance(found, tuple) else found
        return f"sample {index} of `{kind}`, read from {str(path)!r}"
    except Exception:
        return f"sample {index} of `{kind}`"


@contextmanager
def _located(doing: str | Callable[[], str], name: str, way_out: str = "") -> Iterator[None]:
    """Have errors say where they happened; they keep their class, which workers can pass on."""
    try:
        yield
    except Exception as error:
        text = f"  {doing if isinstance(doing, str) else doing()}, of {name}.{way_out}"
        args = error.args
        if len(args) == 1 and isinstance(args[0], str) and not isinstance(error, KeyError):
            error.args = (f"{args[0]}\n{text}",)
        else:
            error.add_note(text)
        raise
