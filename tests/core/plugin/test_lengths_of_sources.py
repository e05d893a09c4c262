"""The length of an iterator whose epochs last until its sources end."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import UnknownLengthError
from headrace.plugin.base_iterator import _DaliBaseIterator

BATCH = 2


class Steps(_DaliBaseIterator):
    def _assemble(self, batches):
        return batches


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def pipeline(sources):
    outputs = [fn.external_source(source=source, **how) for source, how in sources]
    return tuple(outputs)


def iterator(*sources, **options):
    return Steps(pipeline([(s, {"cycle": "raise"} | how) for s, how in sources], **options))


def items(count, width=BATCH):
    return [np.zeros((width, 3), np.uint8)] * count


def samples(count):
    return [np.zeros(3, np.uint8)] * count


class Sized:
    """An iterable with a length."""

    def __init__(self, found):
        self.found = found

    def __len__(self):
        return len(self.found)

    def __iter__(self):
        yield from self.found


class Tutorial(Sized):
    """As DALI's tutorials show it: an iterator whose length counts the samples of the data set."""

    def __len__(self):
        return BATCH * len(self.found)

    def __iter__(self):
        self.rest = iter(self.found)
        return self

    def __next__(self):
        return next(self.rest)


class Called:
    """A function of the position."""

    def __init__(self, found):
        self.found = found

    def __len__(self):
        return len(self.found)

    def __call__(self, position):
        number = getattr(position, "idx_in_epoch", position)
        if number >= len(self.found):
            raise StopIteration
        return self.found[number]


def generated():
    yield from items(3)


FUNCTION = {"cycle": None}
SAMPLES = {"batch": False}
KNOWN = {
    "a list": ([(items(5), {})], 5),
    "an array": ([(np.zeros((4, BATCH, 3), np.uint8), {})], 4),
    "an iterable": ([(Sized(items(3)), {})], 3),
    "a function": ([(Called(items(3)), FUNCTION)], 3),
    "samples": ([(Sized(samples(7)), SAMPLES)], 3),
    "a function of samples": ([(Called(samples(7)), FUNCTION | SAMPLES)], 3),
    "the shortest of two": ([(items(5), {}), (Called(items(2)), FUNCTION)], 2),
    "beside one without an end": ([(items(5), {}), (items(2), {"cycle": True})], 5),
}
UNKNOWN = {
    "a generator": [(generated, {})],
    "an iterator": [(Tutorial(items(3)), {})],
    "no end": [(items(3), {"cycle": True})],
    "beside a known one": [(items(3), {}), (generated, {})],
}


def counted(it):
    return sum(1 for _ in it)


@pytest.mark.parametrize("case", KNOWN)
def test_known(case):
    sources, length = KNOWN[case]
    it = iterator(*sources)
    for _ in range(2):
        assert len(it) == length
        assert counted(it) == length
    next(iter(it))
    assert len(it) == length, "also halfway"


@pytest.mark.parametrize("case", ["a list", "a function", "a function of samples", "an iterable"])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_parallel_sources(case, prefetch):
    ((source, how),), length = KNOWN[case]
    how = how | {"parallel": "processes" if case == "an iterable" else True}
    it = iterator((source, how), py_num_workers=1, prefetch_queue_depth=prefetch)
    assert len(it) == counted(it) == length


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown(case):
    it = iterator(*UNKNOWN[case])
    with pytest.raises(UnknownLengthError, match="`reader_name`"):
        len(it)
    with pytest.raises(TypeError):
        len(it)
    assert it._size == it.size == -1
    assert bool(it)
    if case != "no end":
        assert len(list(it)) == 3


def test_what_is_not_begun_anew():
    it = iterator((items(3), {"cycle": False}))
    assert len(it) == counted(it) == 3
    with pytest.raises(UnknownLengthError):
        len(it)


def test_behind_a_checkpoint():
    options = {"enable_checkpointing": True}
    it = iterator((items(5), {}), **options)
    next(it), next(it)
    (saved,) = it.checkpoints()
    again = iterator((items(5), {}), checkpoint=saved, **options)
    assert len(again) == 5
    assert counted(again) == 3


def test_data_that_is_fed_or_read(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def reading():
        return fn.readers.file(files=[str(tmp_path / "a")], name="reader")[0]

    with pytest.raises(UnknownLengthError):
        len(Steps(reading()))
    assert len(Steps(reading(), reader_name="reader")) == 1
