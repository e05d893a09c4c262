"""Whatever samples are bad: an epoch has all good ones, and no batch without any."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from headrace import fn, pipeline_def
from headrace.errors import UsageError
from headrace.plugin.base_iterator import LastBatchPolicy, _DaliBaseIterator

MOST = 14
FILL, DROP, PARTIAL = LastBatchPolicy


class Rows(_DaliBaseIterator):
    """Gives, for each pipeline, the numbers of the samples of a batch."""

    def _assemble(self, batches):
        found = []
        for (batch,), kept in batches:
            rows = [int(np.asarray(batch.at(i))[0]) for i in range(len(batch))]
            found.append(rows[:kept] if isinstance(kept, int) else [rows[i] for i in kept])
        return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    for k in range(MOST):
        np.save(folder / f"{k}.npy", np.int32([k]))
    (folder / "bad.npy").write_bytes(b"nothing")
    return folder


def iterator(files, case, shards, *, by_size=False, **options):
    count, size, bad, num_shards, padded, sticks, policy = case

    @pipeline_def(batch_size=size, num_threads=2, device_id=None, on_bad_sample="skip")
    def numbers(shard):
        names = ["bad.npy" if k in bad else f"{k}.npy" for k in range(count)]
        return fn.readers.numpy(
            files=[str(files / name) for name in names],
            num_shards=num_shards,
            shard_id=shard,
            stick_to_shard=sticks,
            pad_last_batch=padded,
            name="reader",
        )

    pipelines = [numbers(shard, **options) for shard in shards]
    if by_size:
        with pytest.warns(Warning, match="reader_name"):
            return Rows(pipelines, count, last_batch_padded=padded, last_batch_policy=policy)
    return Rows(pipelines, reader_name="reader", last_batch_policy=policy)


@st.composite
def cases(draw, most_shards=3):
    shards = draw(st.integers(1, most_shards))
    count = draw(st.integers(shards, MOST))
    bad = draw(st.sets(st.integers(0, count - 1)))
    for k in range(shards):  # each has a good one
        own = range(k * count // shards, (k + 1) * count // shards)
        if set(own) <= bad:
            bad.discard(draw(st.sampled_from(own)))
    sizes, flags = st.integers(1, 5), st.booleans()
    policy = st.sampled_from(LastBatchPolicy)
    return count, draw(sizes), bad, shards, draw(flags), draw(flags), draw(policy)


@given(cases(most_shards=1), st.booleans())
def test_the_epoch_of_one_shard_ends_with_its_last_good_sample(files, case, by_size):
    count, size, bad, _, padded, _, policy = case
    good = sorted(set(range(count)) - bad)
    if policy is DROP and len(good) < size:
        return
    loader = iterator(files, case, [0], by_size=by_size)
    for _ in range(3):
        batches = [rows for (rows,) in loader]
        assert all(batches)
        assert not bad.intersection(*[set().union(*batches)])
        given = [row for rows in batches for row in rows]
        if policy is not PARTIAL:
            assert {len(rows) for rows in batches} == {size}
        if not padded:
            continue
        if policy is DROP:
            assert len(set(given)) == len(given) == len(good) // size * size
            continue
        assert set(given) == set(good)
        assert policy is FILL or len(given) == len(good)
        for number, rows in enumerate(batches):  # none repeats only
            assert set(rows) - {row for before in batches[:number] for row in before}


@given(cases(), st.booleans())
def test_all_shards_have_as_many_batches_and_none_is_empty(files, case, together):
    _, size, bad, shards, _, _, policy = case
    groups = [range(shards)] if together else [[k] for k in range(shards)]
    if policy is DROP and (case[0] - len(bad) * (shards == 1)) // shards < size:
        return  # no shard has a batch
    loaders = [iterator(files, case, group) for group in groups]
    for _ in range(3):
        epochs = [list(loader) for loader in loaders]
        assert len({len(epoch) for epoch in epochs}) == 1
        for rows in (rows for epoch in epochs for step in epoch for rows in step):
            assert rows
            assert not bad.intersection(rows)
            assert policy is PARTIAL or len(rows) == size


@given(cases(), st.integers(0, 4))
def test_an_iterator_goes_on_in_the_middle(files, case, steps):
    try:
        first = iterator(files, case, range(case[3]), enable_checkpointing=True)
    except UsageError:
        return
    for _ in zip(range(steps), first, strict=False):
        pass
    state = first.state_dict()
    second = iterator(files, case, range(case[3]), enable_checkpointing=True)
    second.load_state_dict(state)
    if steps < len(first) and first._given < len(first):
        rest = []
        while True:
            try:
                rest.append(next(first))
            except StopIteration:
                break
        assert list(second) == (rest or list(first))  # where nothing was left, the next epoch
        assert list(second) == list(first)
