"""Pipelines as bytes: what comes back, what is refused, and that reading them runs no code."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import nvidia.dali
import pytest

import headrace
from headrace import errors, fn, pipeline_def, tfrecord, types
from headrace.operators import Arg, BatchOperator, FloatArg, Input, operator
from headrace.operators.support import registry
from headrace.pipeline import Pipeline
from tests.support import tf_records
from tests.support.images import class_folders


def batches(pipe, count=3, **fed):
    return [[np.array(s) for out in pipe.run(**fed) for s in out] for _ in range(count)]


def assert_same(one, other):
    for a_batch, b_batch in zip(one, other, strict=True):
        for a, b in zip(a_batch, b_batch, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_features_of_records(tmp_path):
    """Records of TensorFlow, alone and in a mix; a pipeline that was read can be written again."""
    args = tf_records.write(tmp_path / "x.rec", [tf_records.example({"n": [7]})] * 3)
    features = {
        "n": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "x": tfrecord.VarLenFeature(tfrecord.float32, 0.5),
    }
    pipe = Pipeline(2, 1, None)
    with pipe:
        found = fn.readers.tfrecord(**args, features=features)
        pipe.set_outputs(*fn.readers.mix([list(found.values())]), *found.values())
    saved = Pipeline.deserialize(pipe.serialize()).serialize()
    wanted = batches(pipe)
    assert wanted[0][0].tolist() == [7]
    assert_same(batches(Pipeline.deserialize(saved)), wanted)


@pipeline_def(batch_size=3, num_threads=2, seed=11)
def files(root):
    encoded, label = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image(encoded)
    turned = fn.rotate(images, angle=fn.random.uniform(range=(-20, 20)), fill_value=7)
    mean = types.Constant(np.float32([1.5, np.nan, -np.inf]))
    return (
        fn.crop_mirror_normalize(
            fn.resize(turned, size=(8, 9), interp_type=types.INTERP_CUBIC),
            mean=[1.0, 2.0, 3.5],
            mirror=fn.random.coin_flip(),
            dtype=np.float16,
        ),
        label.shape() + 1,
        mean,
        fn.cast(label, dtype=types.INT64) * types.Constant(1 << 40).int64(),
        images.source_info(),
    )


def test_the_same_bytes(tmp_path):
    class_folders(tmp_path / "photos", 10)
    original = files(tmp_path / "photos", enable_checkpointing=True)
    path = tmp_path / "pipe.json"
    data = original.serialize(filename=path)
    assert path.read_bytes() == data
    loaded = Pipeline.deserialize(filename=str(path))
    assert (loaded.max_batch_size, loaded.num_threads, loaded.seed) == (3, 2, 11)
    assert loaded.exec_dynamic == original.exec_dynamic
    assert loaded.reader_meta("reader") == original.reader_meta("reader")
    assert_same(batches(loaded), batches(original))
    assert loaded.serialize() == data == original.serialize()
    # A checkpoint of either is one of the other.
    resumed = Pipeline.deserialize(data, checkpoint=original.checkpoint())
    assert_same(batches(resumed), batches(loaded))
    overridden = Pipeline.deserialize(data.decode(), batch_size=2, num_threads=1, seed=None)
    assert (overridden.max_batch_size, overridden.num_threads, overridden.seed) == (2, 1, None)


def test_the_file_can_be_read_by_people(tmp_path):
    data = files(tmp_path).serialize()
    lines = data.decode().splitlines()
    assert lines[0].startswith('{"headrace pipeline": 1, "written by": "')
    resize = next(json.loads(line.rstrip(",")) for line in lines if '"resize"' in line)
    assert resize["arguments"]["size"] == [8.0, 9.0]
    assert resize["arguments"]["interp_type"] == {"enum": "DALIInterpType.INTERP_CUBIC"}
    assert resize["created at"][0].startswith(__file__)


def test_sources_that_are_fed():
    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def p():
        x = fn.external_source(name="x", layout="HW", dtype=types.FLOAT, repeat_last=True)
        return x + fn.external_source(), fn.copy(x)

    made = Pipeline.deserialize(p().serialize())
    unnamed = next(n.name for n in made._define() if not n.explicit_name and n.input_queue)
    made.feed_input(unnamed, np.full((2, 2, 3), 2, np.float32))
    total, copy = made.run(x=np.ones((2, 2, 3), np.float32))
    assert total.as_array().tolist() == [[[3.0] * 3] * 2] * 2
    assert copy.layout() == "HW"
    with pytest.raises(errors.DataTypeError, match="int32"):
        made.run(x=np.ones((2, 2, 3), np.int32))


def _source():
    return np.zeros((2, 3), np.float32)


def test_python_code_is_refused():
    def unknown():
        registry._schemas["_unlisted"] = made = dataclasses.replace(
            registry.find("copy"), name="_unlisted"
        )
        node = fn.copy(fn.random.uniform())
        del registry._schemas["_unlisted"]
        node.source.schema = made
        return node

    for define, words in (
        (lambda: fn.external_source(_source, name="mine"), ["fn.external_source", '"mine"']),
        (lambda: fn.python_function(function=_source), ["`fn.python_function`", "a function"]),
        (lambda: fn.external_source([np.zeros((2, 3))]), ["`source` is Python code"]),
        (unknown, ["`fn._unlisted`", "Python function"]),
        (
            lambda: fn.external_source(name="s", cuda_stream=object()),
            ["`cuda_stream`", "an object of type object"],
        ),
    ):
        with pytest.raises(errors.SerializationError) as caught:
            pipeline_def(define)(batch_size=2, num_threads=1).serialize()
        assert isinstance(caught.value, (ValueError, RuntimeError))
        for word in ("Could not serialize the operator", *words, __file__):
            assert word in str(caught.value)


def test_what_is_no_pipeline():
    pipe = pipeline_def(lambda: fn.random.uniform())(batch_size=2, num_threads=1)
    data = pipe.serialize()
    graph = nvidia.dali.pipeline_def(lambda: nvidia.dali.fn.random.uniform())
    foreign = graph(batch_size=2, num_threads=1, device_id=None).serialize()
    head, _, body = data.partition(b'"headrace pipeline": 1')
    newer = head + b'"headrace pipeline": 2' + body
    for given, words in (
        (b"", "empty"),
        (b"abc", "Error parsing serialized pipeline"),
        ("abc", "Error parsing"),
        (foreign, "DALI serializes"),
        (data[:-20], "cannot be read to the end"),
        (data.replace(b"uniform", b"uniforn"), "does not match its checksum"),
        (newer, "has format 2, written by Headrace"),
        (pipe_checkpoint(), "Error parsing"),
    ):
        with pytest.raises(errors.SerializationError, match=words):
            Pipeline.deserialize(given)
    with pytest.raises(TypeError, match="is a int"):
        Pipeline.deserialize(3)
    for arguments in ({}, {"serialized_pipeline": data, "filename": "f"}):
        with pytest.raises(ValueError, match="mutually exclusive"):
            Pipeline.deserialize(**arguments)
    with pytest.raises(FileNotFoundError):
        Pipeline.deserialize(filename="/nowhere/at/all")
    with pytest.raises(TypeError, match="nonsense"):
        Pipeline.deserialize(data, nonsense=1)


def pipe_checkpoint():
    made = pipeline_def(lambda: fn.random.uniform())
    pipe = made(batch_size=2, num_threads=1, enable_checkpointing=True)
    pipe.run()
    return pipe.checkpoint()


def reworked(data, change):
    """Bytes with another content and the checksum of that."""
    from headrace.pipeline.serialized import _checksum

    content = json.loads(data)
    change(content)
    body = {k: content[k] for k in ("settings", "graph")}
    return json.dumps({**content, "checksum": _checksum(body)})


def test_content_that_is_wrong():
    data = files("/nowhere").serialize()

    def each(change):
        return lambda c: [change(op) for op in c["graph"]["operators"]]

    for change, error, words in (
        (each(lambda op: op.pop("created at")), errors.SerializationError, "damaged: KeyError"),
        (each(lambda op: op.update(inputs=[["none", 0]])), errors.SerializationError, "damaged"),
        (each(lambda op: op.update(arguments={"no": 1})), KeyError, '"no" is not defined'),
        (each(lambda op: op.update(operator="newest")), ValueError, "a newer one has written"),
        (each(lambda op: op.update(arguments={"a": {"b": 1}})), ValueError, "kind of value 'b'"),
        (lambda c: c["settings"].update(batch_size="x"), TypeError, "batch_size"),
    ):
        with pytest.raises(error, match=words):
            Pipeline.deserialize(reworked(data, change))
    # What is read is looked up in tables: there is no way to name code.
    evil = {"array": {"dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="}}
    with pytest.raises(errors.SerializationError, match="elements of type object"):
        Pipeline.deserialize(
            reworked(data, lambda c: c["graph"]["operators"][0].update(arguments={"a": evil}))
        )


def test_definitions_that_are_given_or_inherited():
    class Legacy(Pipeline):
        def define_graph(self):
            return fn.constant(idata=[4])

    assert Legacy.deserialize(Legacy(2, 1).serialize()).run()[0].as_array().tolist() == [[4], [4]]
    data = Pipeline(2, 1).serialize(lambda: (fn.constant(idata=[5]), 6))
    assert [o.as_array()[0].tolist() for o in Pipeline.deserialize(data).run()] == [[5], 6]
    pipe = pipeline_def(lambda: fn.random.uniform())(batch_size=2, num_threads=1)
    with pytest.raises(RuntimeError, match="Duplicate graph definition"):
        pipe.serialize(lambda: fn.random.uniform())
    with pytest.raises(TypeError, match=r"serialize\(filename=...\)"):
        pipe.serialize("file")
    with pytest.raises(NotImplementedError):
        Pipeline(2, 1).serialize()


def test_deserialize_and_build():
    data = pipeline_def(lambda: fn.random.uniform())(batch_size=2, num_threads=1, seed=5)
    expected = batches(data)
    empty = Pipeline()
    empty.deserialize_and_build(data.serialize())
    assert (empty.max_batch_size, empty.seed) == (2, 5)
    assert_same(batches(empty), expected)
    own = Pipeline(batch_size=4, num_threads=3, seed=6)
    own.deserialize_and_build(data.serialize())
    assert (own.max_batch_size, own.num_threads, own.seed) == (4, 3, 6)
    assert len(own.run()[0]) == 4
    with pytest.raises(RuntimeError, match="built already"):
        own.deserialize_and_build(data.serialize())


def test_settings():
    made = pipeline_def(lambda: (fn.random.uniform(), fn.random.coin_flip()))
    given = {
        "num_threads": -1,
        "prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 2},
        "output_dtype": [types.FLOAT, None],
        "output_ndim": 0,
        "stream_policy": headrace.StreamPolicy.SINGLE,
        "fuse": False,
        "on_bad_sample": "skip",
    }
    data = made(batch_size=2, **given).serialize()
    with pytest.raises(ValueError, match="only be used for serialization"):
        Pipeline.deserialize(data)
    loaded = Pipeline.deserialize(data, num_threads=2)
    assert loaded.prefetch_queue_depth == given["prefetch_queue_depth"]
    assert loaded.output_dtype() == [types.FLOAT, None]
    assert loaded.stream_policy is headrace.StreamPolicy.SINGLE
    assert (loaded._settings.fuse, loaded._settings.on_bad_sample) == (False, "skip")
    loaded = Pipeline.deserialize(data, num_threads=2, prefetch_queue_depth={"cpu": 5})
    assert loaded.prefetch_queue_depth == {"cpu_size": 5, "gpu_size": 5}
    with pytest.raises(ValueError, match="must contain either 'cpu' or 'gpu' key"):
        Pipeline.deserialize(data, num_threads=2, prefetch_queue_depth={"size": 5})
    # Without a number of its own, a pipeline takes that of the machine that runs it.
    built = made(batch_size=2)
    built.build()
    assert '"num_threads"' not in built.serialize().decode()


def test_own_operators():
    @operator("_test.twice", inputs=(Input(),), args=(Arg("factor", FloatArg, 2.0, "How often."),))
    class Twice(BatchOperator):
        """Multiply."""

        def cpu(self, c, data):
            for row in data.rows:
                c.empty(0, row.shape, row.dtype)[...] = row * self.args.factor

    data = pipeline_def(lambda: fn._test.twice(fn.random.uniform(), factor=3))
    data = data(batch_size=2, num_threads=1, seed=1).serialize()
    assert json.loads(data)["graph"]["operators"][1]["declared by"] == __name__
    known = registry._schemas.pop("_test.twice")
    with pytest.raises(errors.SerializationError, match=f"The module {__name__} declared it"):
        Pipeline.deserialize(data)
    registry._schemas["_test.twice"] = known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [n.schema.name for n in Pipeline.deserialize(data)._define()][1] == "_test.twice"
    del registry._schemas["_test.twice"]
