"""Debug mode: operators run as the definition calls them, and make what they make without it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import headrace
from headrace import errors, fn, ops, types
from headrace.pipeline import Pipeline
from headrace.pipeline.experimental import pipeline_def
from tests.support.images import class_folders

SETTINGS = {"batch_size": 3, "num_threads": 2, "seed": 5, "prefetch_queue_depth": 1}


def both(define, **settings):
    """The pipeline of a definition, without and with debug mode."""
    made = pipeline_def(define, **{**SETTINGS, **settings})
    return made(), made(debug=True)


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a.dtype, a.layout()) == (b.dtype, b.layout())
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(np.array(x), np.array(y))


def test_readers_and_draws(tmp_path):
    class_folders(tmp_path, 7)

    def p():
        flip = fn.random.coin_flip()
        unused = fn.random.normal()  # it has no number without debug mode
        encoded, label = fn.readers.file(file_root=tmp_path, random_shuffle=True, name="r")
        images = fn.decoders.image(encoded)
        angle = fn.random.uniform(range=(-9, 9))
        images = fn.rotate(images, angle=angle, fill_value=1)
        del unused
        return fn.flip(images, horizontal=flip), label, images.shape(), images.source_info(), 3.5

    normal, debug = both(p)
    for _ in range(5):
        assert_same(normal.run(), debug.run())
    assert debug.reader_meta("r") == normal.reader_meta("r")
    assert debug.epoch_size("r") == normal.epoch_size("r") == 7
    assert debug.epoch_size() == {"r": 7}


def test_sources():
    data = [np.full((n, 2), n, np.float32) for n in (3, 2, 1, 3)]

    def p():
        before = fn.random.uniform()  # as many as the source has, which comes behind it
        x, y = fn.external_source(
            source=lambda i: (data[i], data[i]) if i < 4 else next(iter(())), num_outputs=2
        )
        return x + y, before

    normal, debug = both(p)
    for _ in range(2):
        for _ in range(4):
            assert_same(normal.run(), debug.run())
        for pipe in (normal, debug):
            for _ in range(2):
                with pytest.raises(StopIteration):
                    pipe.run()
            pipe.reset()


@pytest.mark.parametrize("parallel", [True, "threads"])
def test_parallel_sources(parallel):
    def p():
        return fn.external_source(
            source=lambda info: np.float32([info.idx_in_epoch, info.iteration]),
            batch=False,
            parallel=parallel,
        ) * types.Constant(2)

    normal, debug = both(p, py_num_workers=2)
    for _ in range(3):
        assert_same(normal.run(), debug.run())
    debug._shutdown()


def test_data_that_is_fed():
    def p():
        x = fn.external_source(name="x", layout="HW")
        return fn.copy(x + fn.external_source(name="y", repeat_last=True)), x

    normal, debug = both(p)
    for pipe in (normal, debug):
        pipe.feed_input("y", np.ones((3, 1, 2), np.float32))
    for k in range(3):
        batch = np.full((3, 1, 2), k, np.float32)
        normal.feed_input("x", batch)
        debug.feed_input("x", batch)
        assert_same(normal.run(), debug.run())
    for pipe in (normal, debug):
        with pytest.raises((IndexError, StopIteration)):
            pipe.run()
        assert_same(pipe.run(x=batch), pipe.run(x=batch))
        with pytest.raises(KeyError, match='"z"'):
            pipe.feed_input("z", batch)
    with pytest.raises(RuntimeError, match="has a `source`"):
        both(lambda: fn.external_source(lambda: batch, name="s"))[1].feed_input("s", batch)


def test_branches():
    seen = []

    def helper(x):
        return fn.cast(x * 2, dtype=types.INT32)

    def p():
        x = fn.external_source(lambda i: np.arange(3, dtype=np.int32) + i, batch=True)
        y = fn.random.uniform()
        if x % 2 == 0:
            y = y + 10
            if x > 2 and x < 5:
                x = helper(x)
                seen.append(x)
                seen.append(str(x))
        else:
            y = fn.random.normal(y) + 5
        z = x * 0 if x == 0 else x
        return x, y, not x, z

    normal, debug = both(p, enable_conditionals=True)
    seen.clear()
    sizes = []
    for _ in range(4):
        assert_same(normal.run(), debug.run())
        node, text = seen[-2:]
        sizes.append(int(text.partition("num_samples=")[2].partition(",")[0]))
        with pytest.raises(errors.UsageError, match="its iteration is over"):
            node.get()
    assert sizes == [0, 0, 1, 1]


def test_data_can_be_looked_at():
    looked = []

    @pipeline_def(debug=True, **SETTINGS)
    def p():
        x = fn.external_source(lambda: np.ones((3, 2, 2), np.float32), name="x", layout="HW")
        y = x * 3 + fn.random.uniform(seed=2) * 0
        if isinstance(y.get(), headrace.tensors.TensorListCPU):
            looked.append((y.get(), repr(y), Pipeline.current(), threading.active_count()))
            y.get().at(0)[0, 0] = 100  # the very memory that operators read
        return y[0], y.shape(), y

    pipe = p()
    first, shape, whole = pipe.run()
    batch, text, current, _ = looked[0]
    assert current is pipe
    assert batch.shape() == [(2, 2)] * 3
    assert batch.layout() == "HW"
    assert "TensorListCPU" in text
    assert 'name="___ArithmeticGenericOp' in text
    assert first.at(0).tolist() == [100, 3]
    assert whole.at(1).tolist() == [[3, 3], [3, 3]]
    assert shape.at(2).tolist() == [2, 2]
    pipe.run()
    assert len(looked) == 2, "it is executed in every run; without data, no type is known"


def test_batches_are_inputs():
    @pipeline_def(debug=True, **SETTINGS)
    def p(look):
        x = fn.external_source(lambda: [np.full((2, k), k, np.float32) for k in (1, 2, 3)])
        draw = fn.random.uniform()
        y = fn.copy(x.get() if look else list(x.get()))
        z = fn.copy([np.array(s) * 10 for s in x.get()]) if look else y
        if look == 2:
            z = fn.copy([np.zeros(3)])
        return x, y, z, draw

    for look in (0, 1):
        pipe, other = p(look), p(look)
        for _ in range(2):
            x, y, z, draw = pipe.run()
            assert_same([x], [y])
            assert z.at(2).tolist() == [[30.0 if look else 3.0] * 3] * 2
            assert_same([draw], [other.run()[3]])
    with pytest.raises(RuntimeError, match="has 1 samples, and the operators before it 3"):
        p(2).run()

    @pipeline_def(debug=True, enable_conditionals=True, **SETTINGS)
    def q():
        x = fn.random.uniform()
        if x > 0:
            x = fn.copy(x.get())
        return x

    with pytest.raises(ValueError, match="hand it to an operator outside of the branch"):
        q().run()


def test_errors_come_where_the_operator_is_called():
    after = []

    @pipeline_def(debug=True, **SETTINGS)
    def p(wrong):
        x = fn.external_source(lambda: [np.zeros((4, 4, 3), np.uint8)] * 3, layout="HWC")
        try:
            y = fn.crop(x, crop=(2, 2) if not wrong else (9, 9))
        except RuntimeError as error:
            after.append(str(error))
            y = x
        return y

    assert p(False).run()[0].shape() == [(2, 2, 3)] * 3
    assert p(True).run()[0].shape() == [(4, 4, 3)] * 3
    assert "fn.crop" in after[-1]
    assert __file__ in after[-1]


def changing(define, **settings):
    """Runs a definition that is given the number of the iteration."""
    count = iter(range(-1, 9))
    return pipeline_def(lambda: define(next(count)), debug=True, **{**SETTINGS, **settings})()


def test_operators_must_not_change():
    def feed():
        return fn.external_source(lambda: np.ones((3, 2), np.float32), name="x")

    def one():
        return fn.constant(idata=[1])

    def same_elsewhere():
        return fn.constant(idata=[1])

    for define, words in (
        (lambda k: fn.copy(feed()) if k < 1 else fn.cast(feed(), dtype=types.INT32), "fn.cast"),
        (lambda k: feed() if k < 1 else feed() + 1, "Unexpected operator"),
        (lambda k: feed() + 1 if k < 1 else feed(), "called 1 operators, and 2 before"),
        (lambda k: fn.cast(feed(), dtype=types.INT32 if k < 1 else types.INT8), "`dtype`"),
        (lambda k: fn.pad(feed(), fill_value=float(k > 0)), "changed value from 0.0 to 1.0"),
        (lambda k: fn.constant(idata=[int(k > 0)]), "`idata`.*changed value"),
        (lambda k: (one, same_elsewhere)[k > 0](), "Unexpected operator `fn.constant`"),
        (
            lambda k: fn.pad(feed(), fill_value=fn.random.uniform() if k < 1 else 1),
            "Unexpected operator|but had one for",
        ),
    ):
        pipe = changing(define)
        pipe.run()
        with pytest.raises(RuntimeError, match=words) as caught:
            pipe.run()
        assert __file__ in str(caught.value) or "called 1" in str(caught.value)
    # Arrays are constants, which may change.
    pipe = changing(lambda k: feed() + np.float32([k, k]))
    assert [pipe.run()[0].at(0).tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_definitions_that_decide_by_data():
    def p():
        late = fn.random.coin_flip()
        x = fn.external_source(lambda: np.full((3, 2), 7, np.float32), name="x")
        if x.get().at(0)[0] > 3:
            x = x + fn.random.uniform()
        fed = fn.external_source(name="fed")
        return x, fn.cast(late, dtype=types.FLOAT), fed

    pipe = pipeline_def(p, debug=True, **SETTINGS)()
    pipe.feed_input("fed", np.zeros((3, 1), np.float32))
    with pytest.warns(UserWarning, match=r"fn\.random\.coin_flip.*other random numbers"):
        x, late, _ = pipe.run()
    assert (np.array(x.at(0)) >= 6).all()
    assert set(late.as_array().tolist()) <= {0.0, 1.0}
    pipe.run(fed=np.zeros((3, 1), np.float32))
    pipe = pipeline_def(p, debug=True, **SETTINGS)()
    pipe.feed_input("fed", np.zeros((2, 1), np.float32))
    with pytest.raises(RuntimeError, match="Batch size must be uniform"):
        pipe.run()


def test_classes_and_constants():
    double = ops.Cast(dtype=types.INT64)

    def p():
        x = fn.constant(idata=[1, 2])
        return (
            double(x),
            fn.python_function(x, function=lambda a: a * 2),
            x + np.int32([3, 4]),
            fn.copy([1.5, 2.5]),
            ops.random.Uniform(range=(0, 9))(),
        )

    normal, debug = both(p)
    for _ in range(2):
        assert_same(normal.run(), debug.run())
    parts = list(debug._known.parts.values())
    for _ in range(2):  # the function is another one in each iteration
        assert_same(normal.run(), debug.run())
    replaced = [part for part in parts if part not in debug._known.parts.values()]
    assert [part.node.schema.name for part in replaced] == ["python_function"]
    assert not replaced[0].executor._threads


def test_what_does_not_work(tmp_path):
    @pipeline_def(debug=True, **SETTINGS)
    def p():
        return fn.random.uniform()

    pipe = p()
    with pytest.raises(RuntimeError, match="`with` cannot define one"), pipe:
        pass
    for call in (
        pipe.schedule_run,
        pipe.share_outputs,
        pipe.outputs,
        pipe.checkpoint,
        pipe.output_dtype,
    ):
        with pytest.raises(RuntimeError, match=r"debug mode|checkpoint"):
            call()
    with pytest.raises(NotImplementedError, match='`on_bad_sample`="skip"'):
        p(on_bad_sample="skip")
    with pytest.raises(ValueError, match="no checkpoints"):
        p(enable_checkpointing=True)
    with pytest.raises(ValueError, match="batch size must be set"):
        p(batch_size=None).run()
    with pytest.raises(errors.DataTypeError, match="output_idx=0"):
        p(output_dtype=types.INT8).run()
    with pytest.raises(TypeError, match="nested"):
        pipeline_def(lambda: [fn.random.uniform()], debug=True, **SETTINGS)().run()
    assert pipeline_def(lambda: None, debug=True, **SETTINGS)().run() == ()
    assert p().num_outputs == 1
    pipe.run()
    assert Pipeline.deserialize(pipe.serialize(), batch_size=2).run()[0].shape() == [()] * 2
    pipe.save_graph_to_dot_file(tmp_path / "graph.dot")
    assert "Uniform" in (tmp_path / "graph.dot").read_text()


def test_threads_end():
    def p():
        return fn.random.uniform() + fn.external_source(lambda: np.ones(3, np.float32))

    debug = both(p)[1]
    debug.run()
    threads = [t for part in debug._known.parts.values() for t in part.executor._threads]
    assert threads
    del debug
    gc.collect()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_the_plain_decorator_says_which_one_takes_it():
    with pytest.raises(TypeError, match=r"experimental\.pipeline_def` takes it"):
        headrace.pipeline_def(batch_size=2, debug=True)(lambda: fn.random.uniform())
