"""JAX iterators beside DALI's, on the CPU: arrays, epochs, errors."""

from __future__ import annotations

import inspect

import jax
import numpy as np
import nvidia.dali as dali
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from nvidia.dali.plugin import jax as dali_jax
from nvidia.dali.plugin.base_iterator import LastBatchPolicy as DaliPolicy

import headrace
from headrace.plugin import jax as headrace_jax

NAMES = ["data", "label"]
LIBRARIES = {
    "dali": (dali, dali_jax, DaliPolicy),
    "headrace": (headrace, headrace_jax, headrace_jax.LastBatchPolicy),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for k in range(21):
        (folder / f"{k:02}.bin").write_bytes(bytes([k]) * 16)
    return [str(path) for path in sorted(folder.iterdir())]


def pipeline(library, files, num_shards=1, shard_id=0, batch_size=4, **arguments):
    lib = LIBRARIES[library][0]

    @lib.pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, seed=1)
    def pipe():
        return tuple(
            lib.fn.readers.file(
                files=files, num_shards=num_shards, shard_id=shard_id, name="reader", **arguments
            )
        )

    return pipe()


def iterate(library, pipelines, names=NAMES, *, policy="FILL", **arguments):
    _, plugin, policies = LIBRARIES[library]
    return plugin.DALIGenericIterator(
        pipelines, names, reader_name="reader", last_batch_policy=policies[policy], **arguments
    )


def epochs(it, count=3):
    return [[np.asarray(step["label"]).tolist() for step in it] for _ in range(count)]


def described(step):
    return {
        name: (type(array), array.shape, array.dtype, array.devices(), np.asarray(array).tolist())
        for name, array in step.items()
    }


def both(make):
    return [make(library) for library in LIBRARIES]


def test_arrays(files):
    theirs, ours = both(lambda lib: described(next(iterate(lib, pipeline(lib, files)))))
    assert theirs == ours


@pytest.mark.sweep
@pytest.mark.parametrize("batch_size", [1, 2, 4, 5, 21])
@pytest.mark.parametrize("policy", ["FILL", "DROP"])
@pytest.mark.parametrize("pad", [False, True])
def test_epochs(files, policy, pad, batch_size):
    theirs, ours = both(
        lambda lib: iterate(
            lib, pipeline(lib, files, batch_size=batch_size, pad_last_batch=pad), policy=policy
        )
    )
    assert len(theirs) == len(ours)
    assert epochs(theirs) == epochs(ours)


def test_shuffling(files):
    theirs, ours = both(
        lambda lib: epochs(
            iterate(lib, pipeline(lib, files, random_shuffle=True, initial_fill=7), auto_reset=True)
        )
    )
    assert theirs == ours


@pytest.mark.parametrize("policy", ["FILL", "DROP"])
@pytest.mark.parametrize("stick", [False, True])
def test_several_pipelines_on_one_device(files, policy, stick):
    def make(library):
        pipelines = [pipeline(library, files, 3, k, stick_to_shard=stick) for k in range(3)]
        return iterate(library, pipelines, policy=policy)

    theirs, ours = both(make)
    assert epochs(theirs) == epochs(ours)
    theirs, ours = both(make)
    assert described(next(theirs)) == described(next(ours))


def test_an_axis_for_the_pipeline(files):
    theirs, ours = both(
        lambda lib: described(next(iterate(lib, pipeline(lib, files), pmap_compatible=True)))
    )
    assert theirs == ours


@pytest.mark.parametrize("plain", [False, True])
def test_decorator(files, plain):
    def make(library):
        lib, plugin, _ = LIBRARIES[library]

        def graph(count, shuffle=False):
            return tuple(
                lib.fn.readers.file(files=files[:count], random_shuffle=shuffle, name="reader")
            )

        if plain:
            made = plugin.data_iterator(graph, output_map=NAMES, reader_name="reader")
        else:
            made = plugin.data_iterator(output_map=NAMES, reader_name="reader")(graph)
        it = made(9, shuffle=True, batch_size=2, device_id=None, num_threads=2, seed=5)
        return len(it), epochs(it)

    theirs, ours = both(make)
    assert theirs == ours


def test_checkpoints(files):
    def make(library):
        lib, plugin, _ = LIBRARIES[library]

        @plugin.data_iterator(output_map=NAMES, reader_name="reader")
        def graph():
            return tuple(lib.fn.readers.file(files=files, random_shuffle=True, name="reader"))

        settings = {"batch_size": 4, "device_id": None, "seed": 3, "enable_checkpointing": True}
        it = graph(**settings)
        for _ in range(3):
            next(it)
        saved = it.checkpoints()
        assert [type(state) for state in saved] in ([str], [bytes])
        return epochs(graph(**settings, checkpoints=saved))

    theirs, ours = both(make)
    assert theirs == ours


def outcome(call):
    try:
        return call()
    except Exception as error:
        return error


class TestDifferences:
    """Rows of docs/differences-from-dali.md."""

    def test_names_for_some_of_the_outputs(self, files):
        theirs, ours = both(
            lambda lib: outcome(lambda: list(next(iterate(lib, pipeline(lib, files), ["data"]))))
        )
        assert theirs == ["data"]
        assert isinstance(ours, headrace.errors.ArgumentValueError)

    def test_partial(self, files):
        theirs, ours = both(
            lambda lib: outcome(
                lambda: epochs(iterate(lib, pipeline(lib, files), policy="PARTIAL"))
            )
        )
        assert isinstance(theirs, AssertionError)
        assert [len(step) for step in ours[0]] == [4, 4, 4, 4, 4, 1]

    def test_no_axis_for_several_pipelines(self, files):
        theirs, ours = both(
            lambda lib: (
                next(
                    iterate(
                        lib,
                        [pipeline(lib, files, 2, k) for k in range(2)],
                        pmap_compatible=False,
                    )
                )["label"].shape
            )
        )
        assert theirs == (2, 4, 1)
        assert ours == (8, 1)

    def test_pipelines_on_the_cpu_for_several_devices(self, files):
        mesh = Mesh(np.array(jax.devices("cpu")[:2]), ("batch",))
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        theirs, ours = both(
            lambda lib: outcome(
                lambda: (
                    next(
                        iterate(
                            lib, [pipeline(lib, files, 2, k) for k in range(2)], sharding=sharding
                        )
                    )["label"].sharding
                )
            )
        )
        assert isinstance(theirs, ValueError)
        assert ours == sharding

    def test_a_graph_that_is_a_pipeline_definition(self, files):
        def make(library):
            lib, plugin, _ = LIBRARIES[library]

            @plugin.data_iterator(output_map=NAMES, reader_name="reader")
            @lib.pipeline_def
            def graph():
                return tuple(lib.fn.readers.file(files=files, name="reader"))

            return outcome(lambda: len(graph(batch_size=4, device_id=None)))

        theirs, ours = both(make)
        assert isinstance(theirs, TypeError)
        assert ours == 6

    def test_no_names(self, files):
        theirs, ours = both(
            lambda lib: outcome(lambda: next(iterate(lib, pipeline(lib, files), [])))
        )
        assert theirs == {}
        assert isinstance(ours, headrace.errors.ArgumentValueError)

    def test_no_sharding_at_all(self, files):
        theirs, ours = both(
            lambda lib: outcome(lambda: iterate(lib, pipeline(lib, files), sharding="batch"))
        )
        assert isinstance(theirs, AssertionError)
        assert isinstance(ours, TypeError)


def test_decorators_and_iterators_tell_the_same():
    """Programs look at the arguments without following wrappers, and at docstrings."""
    for made, decorator in (
        (headrace_jax.DALIGenericIterator, headrace_jax.data_iterator),
        (headrace_jax.DALIGenericPeekableIterator, headrace_jax.peekable_data_iterator),
    ):
        taken, given = [inspect.getfullargspec(f).args for f in (made.__init__, decorator)]
        assert taken == inspect.getfullargspec(dali_jax.DALIGenericIterator.__init__).args
        assert given == inspect.getfullargspec(dali_jax.data_iterator).args
        assert taken[2:] == [name for name in given[1:] if name != "devices"]
        first, second = [
            inspect.getdoc(f).split("output_map")[1].split("sharding")[0] for f in (made, decorator)
        ]
        assert first == second
        assert "Names of the outputs" in first
        assert "See `" not in first
