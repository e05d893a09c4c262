"""Functions of JAX inside pipelines on the CPU."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import headrace.experimental.dynamic as ndd
from headrace import errors, fn, pipeline_def, types
from headrace.pipeline import Pipeline
from headrace.plugin.jax import data_iterator
from headrace.plugin.jax import fn as jax_fn
from tests.jax.pipelines import read


def run(graph, *batches, count=1, **options):
    pipe = Pipeline(len(batches[0]), 2, None, seed=1, **options)
    with pipe:
        found = graph(*[fn.external_source(source=itertools.repeat(b)) for b in batches])
        pipe.set_outputs(*(found if isinstance(found, (tuple, list)) else [found]))
    return [pipe.run() for _ in range(count)][-1]


IMAGES = np.random.default_rng(0).integers(0, 255, (4, 6, 5, 3), np.uint8)


def test_flip():
    @jax_fn.jax_function
    @jax.jit
    @jax.vmap
    def flip(image):
        """Flip an image."""
        return image[:, ::-1]

    assert "Flip an image." in flip.__doc__
    (found,) = run(flip, IMAGES, count=3)
    np.testing.assert_array_equal(found.as_array(), IMAGES[:, :, ::-1])
    assert found.as_array().flags.writeable


def test_several_outputs_of_other_types():
    @jax_fn.jax_function(num_outputs=3)
    def both(image, scale):
        return image * scale[:, None, None, None], image.mean(axis=(1, 2)), scale > 1

    scale = np.array([0.5, 1, 1.5, 2], np.float32)
    product, mean, large = run(both, IMAGES, scale)
    np.testing.assert_allclose(product.as_array(), IMAGES * scale[:, None, None, None])
    assert product.dtype == types.FLOAT
    np.testing.assert_allclose(mean.as_array(), IMAGES.mean(axis=(1, 2)), rtol=1e-5)
    assert large.as_array().tolist() == [False, False, True, True]
    assert large.dtype == types.BOOL


def test_operators_before_and_behind():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=3)
    def pipe():
        images = fn.external_source(source=lambda: IMAGES, layout="HWC")
        images = fn.resize(images, size=(8, 8))
        halved = jax_fn.jax_function(lambda x: (x // 2)[:, :4])(images)
        return fn.flip(halved), fn.crop(jax_fn.jax_function(lambda x: x)(images), crop=(3, 3))

    halved, cropped = pipe().run()
    expected = fn_expected()
    np.testing.assert_array_equal(halved.as_array(), (expected // 2)[:, :4, ::-1])
    assert halved.layout() == "HWC"
    assert cropped.as_array().shape == (4, 3, 3, 3)


def fn_expected():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipe():
        return fn.resize(fn.external_source(source=lambda: IMAGES, layout="HWC"), size=(8, 8))

    return pipe().run()[0].as_array()


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_any_settings_give_the_same(fuse, threads):
    @pipeline_def(batch_size=4, num_threads=threads, device_id=None, seed=3, fuse=fuse)
    def pipe():
        images = fn.external_source(source=lambda: IMAGES, layout="HWC")
        images = fn.rotate(images, angle=fn.random.uniform(range=(-20, 20)), keep_size=True)
        images = jax_fn.jax_function(jax.jit(lambda x: 255 - x))(images)
        images = jax_fn.jax_function(jax.jit(lambda x: x.astype(jnp.float32) / 255))(images)
        return images * 2

    made = pipe()
    found = [made.run()[0].as_array() for _ in range(3)]
    assert found[0].dtype == np.float32
    assert not np.array_equal(found[0], found[1])
    if not hasattr(test_any_settings_give_the_same, "first"):
        test_any_settings_give_the_same.first = found
    for one, other in zip(found, test_any_settings_give_the_same.first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_layouts():
    def layouts(given, graph=lambda x: (x, x[..., 0]), count=2):
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            images = fn.external_source(source=lambda: IMAGES, layout="HWC")
            made = jax_fn.jax_function(graph, num_outputs=count, output_layouts=given)
            return tuple(made(images, images))

        return [batch.layout() for batch in pipe().run()]

    def both(x, y):
        return x, y[..., 0]

    assert layouts(None, both) == ["HWC", ""]
    assert layouts(("HWC", "HW"), both) == ["HWC", "HW"]
    assert layouts(["DHW"], both) == ["DHW", ""]
    assert layouts("ABC", lambda x, y: (x, y)) == ["ABC", "ABC"]
    with pytest.raises(errors.LayoutError, match=r'"HWC" of output 1.*2 axes'):
        layouts("HWC", both)


def test_no_outputs():
    seen = []

    @jax_fn.jax_function(num_outputs=0)
    def look(images):
        seen.append(int(images.sum()))

    def graph(images):
        assert look(images) == []
        return images

    run(graph, IMAGES)
    assert seen
    assert set(seen) == {int(IMAGES.sum())}


def test_no_inputs():
    make = jax_fn.jax_function(lambda: jnp.arange(4, dtype=jnp.float32))
    pipe = Pipeline(4, 1, None)
    with pipe:
        pipe.set_outputs(make())
    assert pipe.run()[0].as_array().tolist() == [0, 1, 2, 3]


def test_inputs_are_shared(monkeypatch):
    places = []

    @jax_fn.jax_function
    def look(images):
        places.append(images.unsafe_buffer_pointer())
        return images

    def graph(images):
        copied = fn.copy(images)
        return copied, look(copied)

    images = np.zeros((4, 64, 64), np.float32)
    copied, looked = run(graph, images, prefetch_queue_depth=1)
    assert copied.as_array().ctypes.data in places
    assert looked.as_array().ctypes.data not in places, "what users may write to is not shared"


def test_in_an_iterator(files, over):
    @jax_fn.jax_function
    @jax.jit
    def negative(labels):
        return -labels

    @data_iterator(output_map=["a", "b"], reader_name="reader", sharding=over(4))
    def make(num_shards, shard_id):
        _, labels = read(files, num_shards, shard_id)
        return labels, negative(labels)

    for step in make(batch_size=8):
        assert step["b"].sharding == over(4)
        assert (np.asarray(step["a"]) == -np.asarray(step["b"])).all()


def test_a_sharding_with_one_device(over):
    seen = []

    @jax_fn.jax_function(sharding=over(1))
    def double(x):
        seen.append(x.sharding)
        return x * 2

    (found,) = run(double, np.arange(4.0, dtype=np.float32))
    assert found.as_array().tolist() == [0, 2, 4, 6]
    assert seen[0] == over(1)


def test_a_sharding_with_several_devices(over, devices):
    """Each device has its rows; what comes back is in their order, however it is cut."""
    data = np.arange(24, dtype=np.float32).reshape(8, 3)
    grid = Mesh(np.array(devices[:4]).reshape(2, 2), ("batch", "copy"))
    backwards = NamedSharding(Mesh(np.array(devices[3::-1]), ("batch",)), PartitionSpec("batch"))
    copies = NamedSharding(grid, PartitionSpec("batch"))
    for sharding, rows in ((over(4), 2), (backwards, 2), (copies, 4), (over(4, None), 8)):
        whole = NamedSharding(sharding.mesh, PartitionSpec())
        seen = []

        def function(x, y, whole=whole, seen=seen):
            seen.extend(
                (x.sharding, s.device, s.data.shape, int(s.data[0, 0]))
                for s in x.addressable_shards
            )
            return jax.jit(lambda a: a * 2)(x), jax.device_put(x + y, whole), jnp.sum(y, axis=1)

        twice, added, sums = run(
            jax_fn.jax_function(function, num_outputs=3, sharding=sharding), data, data, count=2
        )
        np.testing.assert_array_equal(twice.as_array(), data * 2)
        np.testing.assert_array_equal(added.as_array(), data * 2)
        np.testing.assert_array_equal(sums.as_array(), data.sum(axis=1))
        indices = sharding.devices_indices_map((8,))
        starts = {device: 3 * (rows_of[0].start or 0) for device, rows_of in indices.items()}
        assert set(seen) == {(sharding, d, (rows, 3), starts[d]) for d in sharding.device_set}
    across = jax_fn.jax_function(sharding=over(4))(
        lambda x: jax.device_put(x, over(3, None, "batch"))
    )
    (cut,) = run(across, data)
    np.testing.assert_array_equal(cut.as_array(), data)
    with pytest.raises(
        errors.ShapeError, match=r"6 samples.*4 equal parts.*pad_last_batch"
    ) as raised:
        run(jax_fn.jax_function(lambda x: x, sharding=over(4)), data[:6])
    assert "in operator `jax_function`, created at" in str(raised.value)
    with pytest.raises(TypeError, match=r"on 4 devices.*`sharding`"):
        run(jax_fn.jax_function(lambda x: jax.device_put(x, over(4))), data)


def test_dynamic_mode():
    double = jax_fn.jax_function(lambda x: x * 2)
    batch = ndd.as_batch(IMAGES)
    for value in (batch, ndd.as_tensor(IMAGES)):
        with pytest.raises(NotImplementedError, match=r"got a (Batch|Tensor) of dyn") as raised:
            double(value)
        assert f"{__file__}:" in str(raised.value)
    itself = jax.numpy.asarray(ndd.as_tensor(batch)) * 2  # what the error says
    np.testing.assert_array_equal(np.asarray(itself), IMAGES * 2)


def test_the_line_of_an_error():
    """Also where JAX has made another function of the user's."""

    def refuse(x):
        raise ValueError("no")

    for function in (refuse, jax.jit(refuse), jax.jit(jax.vmap(refuse))):
        with pytest.raises(ValueError, match=r"raised at \S*test_jax_function.py:\d+ in refuse"):
            run(jax_fn.jax_function(function), IMAGES)


def test_ragged_batches():
    ragged = [np.zeros((2, 3), np.float32), np.zeros((3, 3), np.float32)]
    with pytest.raises(
        errors.ShapeError,
        match=r"Input 0 is a batch of samples with different shapes.*\(2, 3\), \(3, 3\).*fn.pad",
    ):
        run(jax_fn.jax_function(lambda x: x), ragged)


@pytest.mark.parametrize(
    ("function", "count", "error", "text"),
    [
        (lambda x: np.zeros(4), 1, TypeError, "is a ndarray.*arrays of JAX"),
        (lambda x: (x, x), 1, TypeError, r"\(a tuple of\) `num_outputs=1` outputs, but returned 2"),
        (lambda x: x, 2, TypeError, "`num_outputs=2` outputs, but returned 1"),
        (lambda x: x, 0, TypeError, "`num_outputs` is 0"),
        (
            lambda x: x[:2],
            1,
            errors.ShapeError,
            r"size of 4, but the output at index 0 .* 2 x 6 x 5 x 3",
        ),
        (lambda x: x.sum(), 1, errors.ShapeError, r"shape \(\)"),
        (lambda x: 1 / 0, 1, ZeroDivisionError, "division"),
    ],
)
def test_what_functions_may_not_return(function, count, error, text):
    def graph(images):
        jax_fn.jax_function(function, num_outputs=count)(images)  # called, though nobody reads it
        return images

    with pytest.raises(Exception, match=text) as raised:
        run(graph, IMAGES)
    assert isinstance(raised.value, error) or isinstance(raised.value.__cause__, error)
    assert "in operator `jax_function`, " in str(raised.value)
    assert "created at" in str(raised.value)
    assert f"{__file__}:" in str(raised.value), "the user's own line"


def test_wrong_arguments():
    with pytest.raises(errors.ArgumentValueError, match="`num_outputs` is -1"):
        jax_fn.jax_function(num_outputs=-1)
    with pytest.raises(errors.ArgumentValueError, match="`output_layouts`"):
        jax_fn.jax_function(output_layouts=["HWC", "HWC"])
    with pytest.raises(errors.ArgumentValueError, match="`device` is 'tpu'"):
        jax_fn.jax_function(device="tpu")
    with pytest.raises(errors.ArgumentTypeError, match="`sharding`"):
        jax_fn.jax_function(sharding="batch")
    with pytest.raises(errors.ArgumentTypeError, match="decorates a function, got 3"):
        jax_fn.jax_function(3)
