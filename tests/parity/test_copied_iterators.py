"""Iterators that users have copied out of DALI and changed, and what these call, beside DALI."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.plugin.base_iterator
import nvidia.dali.types
import pytest

import headrace
import headrace.fn
import headrace.plugin.base_iterator
import headrace.types
from tests.support import images

LIBRARIES = (nvidia.dali, headrace)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("classes")
    images.class_folders(root, 11, height=8, width=8)
    return root


def reader_pipeline(lib: Any, root: Any, shard: int = 0, shards: int = 1, **options: Any) -> Any:
    pipe = lib.Pipeline(4, 1, None, seed=1, **options.pop("pipeline", {}))
    with pipe:
        _, labels = lib.fn.readers.file(
            file_root=str(root),
            name="Reader",
            random_shuffle=True,
            initial_fill=8,
            shard_id=shard,
            num_shards=shards,
            **options,
        )
        pipe.set_outputs(labels, lib.fn.random.uniform(range=(0, 1)))
    return pipe


def source_pipeline(lib: Any) -> Any:
    pipe = lib.Pipeline(2, 1, None)
    with pipe:
        batches = [np.full((2, 1), i, np.int32) for i in range(3)]
        pipe.set_outputs(lib.fn.external_source(batches, cycle="raise"))
    return pipe


def policies(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.plugin.base_iterator").LastBatchPolicy


def copied(lib: Any) -> type:
    """A class that does by the steps of the base what iterators for frameworks do."""
    base = importlib.import_module(f"{lib.__name__}.plugin.base_iterator")

    class Iterator(base._DaliBaseIterator):
        def __init__(self, pipelines, output_map, size=-1, reader_name=None, **options):
            self.output_map = output_map
            base._DaliBaseIterator.__init__(self, pipelines, size, reader_name, **options)
            self._first_batch = None
            if self._prepare_first_batch:
                self._first_batch = self.__next__()

        def __next__(self):
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            found = [
                {
                    name: np.array(output.as_tensor())
                    for name, output in zip(self.output_map, outputs, strict=True)
                }
                for outputs in self._get_outputs()
            ]
            assert len(found) == self._num_gpus
            self._schedule_runs()
            self._advance_and_check_drop_last()
            if self._reader_name:
                drops, left = self._remove_padded()
                if not np.any(drops):
                    return found
                return [
                    {name: values[:count] for name, values in batch.items()}
                    for batch, count in zip(found, left, strict=True)
                ]
            if (
                self._last_batch_policy == base.LastBatchPolicy.PARTIAL
                and self._counter > self._size > 0
            ):
                count = self._num_gpus * self.batch_size - (self._counter - self._size)
                whole, rest = divmod(count, self.batch_size)
                cut = [{n: v[:rest] for n, v in b.items()} for b in found[whole : whole + 1]]
                return found[:whole] + (cut if rest else [])
            return found

    return Iterator


def epochs(iterator: Any, *, names: Any = ("labels", "numbers")) -> list[Any]:
    found = [len(iterator) if iterator._size > 0 else None, list(iterator.output_map)]
    for _ in range(3):
        found += [[[batch[name].tolist() for name in names] for batch in step] for step in iterator]
        found.append("end")
        iterator.reset()
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("prepares", [True, False])
@pytest.mark.parametrize("pads", [True, False])
@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
def test_one_that_follows_a_reader(folder, policy, pads, prepares):
    for resets in (True, False):
        for shards in (1, 2):
            found = [
                epochs(
                    copied(lib)(
                        [
                            reader_pipeline(lib, folder, i, shards, pad_last_batch=pads)
                            for i in range(shards)
                        ],
                        ["labels", "numbers"],
                        reader_name="Reader",
                        auto_reset=resets,
                        last_batch_policy=policies(lib)[policy],
                        prepare_first_batch=prepares,
                    )
                )
                for lib in LIBRARIES
            ]
            assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:Please set `reader_name`:Warning")
@pytest.mark.filterwarnings("ignore:An iterator with `size`:Warning")
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
def test_one_of_a_size(folder, policy, padded):
    for shards in (1, 2):
        found = [
            epochs(
                copied(lib)(
                    [reader_pipeline(lib, folder, i, shards) for i in range(shards)],
                    ["labels", "numbers"],
                    size=11,
                    last_batch_policy=policies(lib)[policy],
                    last_batch_padded=padded,
                )
            )
            for lib in LIBRARIES
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("resets", [True, False])
def test_one_of_a_source(resets):
    found = [
        epochs(copied(lib)([source_pipeline(lib)], ["labels"], auto_reset=resets), names=["labels"])
        for lib in LIBRARIES
    ]
    assert found[0] == found[1]


def test_reset_before_the_first_loop_keeps_the_batch_made_ahead(folder):
    found = []
    for lib in LIBRARIES:
        iterator = copied(lib)(
            [reader_pipeline(lib, folder)], ["labels", "numbers"], reader_name="Reader"
        )
        iterator.reset()
        found.append(epochs(iterator))
    assert found[0] == found[1]


def test_no_data_is_an_error(folder):
    make = copied(headrace)
    pipe = reader_pipeline(headrace, folder)
    iterator = make([pipe], ["labels", "numbers"], reader_name="Reader")
    with pytest.raises(headrace.errors.UsageError, match="not even one batch"):
        iterator._report_no_data_in_pipeline()


def test_checkpoints_are_from_before_the_batch_made_ahead(folder):
    make = copied(headrace)
    options = {"pipeline": {"enable_checkpointing": True}}
    pipe = reader_pipeline(headrace, folder, **options)
    iterator = make([pipe], ["labels", "numbers"], reader_name="Reader")
    (saved,) = iterator.checkpoints()
    expected = [batch["labels"].tolist() for (batch,) in iterator]
    options["pipeline"]["checkpoint"] = saved
    again = make(
        [reader_pipeline(headrace, folder, **options)], ["labels", "numbers"], reader_name="Reader"
    )
    assert [batch["labels"].tolist() for (batch,) in again] == expected


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_prefetching_by_hand(folder, depth):
    found = []
    for lib in LIBRARIES:
        pipe = reader_pipeline(lib, folder, pipeline={"prefetch_queue_depth": depth})
        pipe.build()
        steps = []
        for _ in range(5):
            pipe._prefetch()
            steps.append([np.array(output.as_tensor()).tolist() for output in pipe.share_outputs()])
            pipe.release_outputs()
            pipe.schedule_run()
        found.append(steps)
    assert found[0] == found[1]


def test_scheduling_as_an_iterator(folder):
    found = []
    for lib in LIBRARIES:
        pipe = reader_pipeline(lib, folder)
        pipe.build()
        way = lib.types.PipelineAPIType.ITERATOR
        with pipe._check_api_type_scope(way):
            pipe.schedule_run()
            outputs = pipe.share_outputs()
            found.append(np.array(outputs[0].as_tensor()).tolist())
            pipe.release_outputs()
        with pytest.raises(RuntimeError, match="Mixing pipeline API"):
            pipe.schedule_run()
        with pytest.raises(RuntimeError, match="Mixing pipeline API"):
            pipe._check_api_type_scope(lib.types.PipelineAPIType.BASIC).__enter__()
    assert found[0] == found[1]


def test_calls_with_their_first_names(folder):
    """DALI has them still, but its `_share_outputs` returns nothing."""
    pipes = [reader_pipeline(headrace, folder) for _ in range(2)]
    found = SimpleNamespace(old=[], new=[])
    for _ in range(4):
        with pytest.warns(DeprecationWarning, match=r"`_run` is deprecated; use `schedule_run`"):
            pipes[0]._run()
        with pytest.warns(DeprecationWarning, match="use `share_outputs`"):
            (labels, _) = pipes[0]._share_outputs()
        found.old.append(np.array(labels.as_tensor()).tolist())
        with pytest.warns(DeprecationWarning, match="use `release_outputs`"):
            pipes[0]._release_outputs()
        found.new.append(np.array(pipes[1].run()[0].as_tensor()).tolist())
    assert found.old == found.new
