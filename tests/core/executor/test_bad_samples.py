"""What happens to samples that cannot be read: raise, skip, replace."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import tests.support.counting_reader
from headrace import Pipeline, errors, fn, pipeline_def, types
from headrace.operators import BatchOperator, Input, SampleOperator, Spec, operator

assert tests.support.counting_reader


@operator("testing.refuse_seven", inputs=Input(), hidden=True)
def refuse_seven(xp, value):
    """Fail on 7."""
    if value == 7:
        raise ValueError("seven")
    return value + 0


@pipeline_def(batch_size=4, num_threads=3, device_id=None)
def numbers(count=12, bad=(), refuse=False, fails=False):
    x = fn.testing.counting_reader(count=count, bad=list(bad), name="reader")
    if fails:
        x = fn.testing.never_works(x)
    return fn.testing.refuse_seven(x) if refuse else x


def values(pipe, iterations):
    return [pipe.run()[0].as_array().tolist() for _ in range(iterations)]


def test_raise_names_operator_sample_file_and_line():
    pipe = numbers(bad=[6, 7])
    assert values(pipe, 1) == [[0, 1, 2, 3]]
    with pytest.raises(errors.BadSampleError) as caught:
        pipe.run()
    message = str(caught.value)
    for part in (
        "6 is bad",
        "fn.testing.counting_reader",
        "sample 2",
        "sample-6",
        "numbers",
        __file__,
    ):
        assert part in message
    assert caught.value.where.sample == 2
    assert values(pipe, 1) == [[8, 9, 10, 11]]  # the pipeline lives on


def test_the_error_of_the_first_bad_sample_is_raised_whatever_the_threads():
    for threads in (1, 4):
        for _ in range(10):
            with pytest.raises(errors.BadSampleError, match="1 is bad"):
                numbers(bad=[1, 2, 3], num_threads=threads).run()


def test_errors_keep_their_own_class():
    with pytest.raises(ValueError, match="seven") as caught:
        values(numbers(refuse=True), 3)
    assert isinstance(caught.value, errors.OperatorError)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_skip_refills_from_the_reader(depth, threads):
    pipe = numbers(
        bad=[1, 6], on_bad_sample="skip", prefetch_queue_depth=depth, num_threads=threads
    )
    got = values(pipe, 3)
    # 1 is made up for by the one behind its batch, and so is 6.
    assert got == [[0, 4, 2, 3], [5, 9, 7, 8], [10, 11, 0, 2]]
    first = pipe.bad_samples[0]
    assert (first.source, first.operator) == ("sample-1", "fn.testing.counting_reader")
    assert "1 is bad" in first.reason
    assert first.action == "skip"


def test_skip_counts_what_it_dropped():
    pipe = numbers(bad=[1, 2], on_bad_sample="skip")
    pipe.run()
    assert pipe._skipped_in_last_outputs == 2
    pipe.run()
    assert pipe._skipped_in_last_outputs == 0


def test_skip_gives_up_when_nothing_is_good():
    with pytest.raises(errors.HeadraceError, match="too many"):
        numbers(bad=range(12), on_bad_sample="skip").run()


def test_skip_goes_on_past_hundreds_of_unreadable_files():
    pipe = numbers(count=600, bad=range(1, 595), on_bad_sample="skip")
    assert values(pipe, 1) == [[0, 595, 596, 597]]
    assert len({bad.source for bad in pipe.bad_samples if bad.iteration == 0}) == 594


def test_skip_with_few_good_samples():
    pipe = numbers(count=12, bad=range(1, 12), on_bad_sample="skip")
    assert values(pipe, 2) == [[0, 0, 0, 0]] * 2


def test_skip_gives_up_early_on_an_operator_that_never_works():
    with pytest.raises(
        errors.HeadraceError, match=r"^(\d\d|1\d\d) bad samples.*too many"
    ) as caught:
        numbers(count=10_000, fails=True, on_bad_sample="skip").run()
    assert "never" in str(caught.value.__cause__)


@operator("testing.never_works", inputs=Input(), hidden=True)
def never_works(xp, value):
    """Fail on everything."""
    raise ValueError("never")


def test_skip_covers_operators_behind_the_reader():
    pipe = numbers(refuse=True, on_bad_sample="skip")
    assert values(pipe, 2) == [[0, 1, 2, 3], [4, 5, 6, 8]]
    assert pipe.bad_samples[0].operator == "fn.testing.refuse_seven"
    assert pipe.bad_samples[0].source == "sample-7"


def test_replace_repeats_the_previous_good_sample():
    pipe = numbers(bad=[0, 2, 3, 5], on_bad_sample="replace")
    assert values(pipe, 2) == [[1, 1, 1, 1], [4, 4, 6, 7]]
    # Two iterations may be under way, and either may be the first to report.
    reports = sorted((b.iteration, b.source) for b in pipe.bad_samples)
    assert reports[:3] == [(0, "sample-0"), (0, "sample-2"), (0, "sample-3")]
    assert {b.action for b in pipe.bad_samples} == {"replace"}


def test_replace_takes_a_sample_from_before_a_batch_of_bad_ones():
    pipe = numbers(bad=[4, 5, 6, 7], on_bad_sample="replace")
    assert values(pipe, 3) == [[0, 1, 2, 3], [3, 3, 3, 3], [8, 9, 10, 11]]
    assert [b.source for b in pipe.bad_samples][:4] == [f"sample-{k}" for k in (4, 5, 6, 7)]
    pipe = numbers(bad=[*range(6), 10, 11], on_bad_sample="replace")
    assert values(pipe, 3) == [[9, 9, 9, 9], [6, 6, 6, 7], [8, 9, 9, 9]]
    reports = [b.source for b in pipe.bad_samples if b.iteration < 3]
    assert sorted(reports) == sorted(f"sample-{k}" for k in [*range(6), 10, 11])


def test_replace_needs_one_good_sample():
    with pytest.raises(errors.HeadraceError, match="All 4 samples"):
        numbers(bad=range(12), on_bad_sample="replace").run()


def test_replace_without_a_reader_needs_a_good_sample_in_the_batch():
    @pipeline_def(batch_size=2, num_threads=2, on_bad_sample="replace")
    def p():
        return fn.testing.never_works(fn.external_source(source=lambda: np.zeros((2, 1))))

    with pytest.raises(errors.HeadraceError, match="All 2 samples"):
        p().run()


def test_ragged_replacement():
    @pipeline_def(batch_size=3, num_threads=2, on_bad_sample="replace")
    def p():
        batch = [np.zeros(k + 1) for k in range(3)]
        return fn.testing.refuse_length_two(fn.external_source(source=lambda: batch))

    assert p().run()[0].shape() == [(1,), (1,), (3,)]


@operator("testing.refuse_length_two", inputs=Input(), hidden=True)
def refuse_length_two(xp, value):
    """Fail on vectors of two elements."""
    if len(value) == 2:
        raise errors.ShapeError("two")
    return value


def png(value):
    """An image of one colour, as a file."""
    memory = io.BytesIO()
    Image.fromarray(np.full((20, 24, 3), value, np.uint8)).save(memory, "png")
    return np.frombuffer(memory.getvalue(), np.uint8)


FILES = [png(0), png(50), np.frombuffer(b"not an image", np.uint8), png(200)]


def firsts(outputs):
    """The first element of each sample of each output."""
    return [[np.asarray(sample).ravel()[0].item() for sample in output] for output in outputs]


@pytest.mark.parametrize("ahead", ["label", "batch"])
def test_replace_takes_the_label_and_the_draw_of_the_same_sample(ahead):
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1, on_bad_sample="replace")
    def p():
        feed = FILES, [np.int32([k]) for k in range(4)]
        encoded, label = fn.external_source(lambda: feed, num_outputs=2)
        draw = fn.random.uniform(range=(0, 1))
        padded = fn.pad(label) if ahead == "batch" else label
        return fn.decoders.image(encoded), label, label + 0, padded * 2, draw, draw + 0

    pipe = p()
    for _ in range(3):
        images, labels, later, doubled, draws, sums = firsts(pipe.run())
        assert images == [0, 50, 50, 200]
        assert labels == later == [0, 1, 1, 3]
        assert doubled == [0, 2, 2, 6]
        assert draws == sums
        assert draws[1] == draws[2]
        assert len(set(draws)) == 3


def test_what_fails_behind_a_batch_operator_is_out_of_what_that_made_too():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_bad_sample="replace")
    def p():
        feed = FILES, [np.int32([k]) for k in range(4)]
        encoded, label = fn.external_source(lambda: feed, num_outputs=2)
        turned = fn.testing.turn_batch(label)
        images = fn.decoders.image(fn.pad(encoded, axes=[], fill_value=0))
        return fn.testing.turn_batch(images), turned, label

    images, turned, labels = firsts(p().run())
    assert labels == [0, 1, 1, 3]
    assert turned == [3, 1, 1, 0]
    assert images == [200, 50, 50, 0]


@operator("testing.turn_batch", inputs=Input(), hidden=True)
class TurnBatch(BatchOperator):
    """The batch in reverse."""

    def infer(self, value):
        return value

    def cpu(self, c, samples):
        return samples[::-1]


def test_skip_looks_at_no_memory_of_the_sample_that_failed():
    def big(value):
        return np.arange(value, value + 20 * 24, dtype=np.int32).reshape(20, 24, 1)

    @operator("testing.big_image", inputs=Input(), hidden=True)
    class BigImage(SampleOperator):
        def infer(self, number):
            return Spec(types.INT32, 3, "HWC")

        def cpu(self, c, number):
            image = c.empty((20, 24, 1), np.int32)
            image[...] = big(int(number))
            return image

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, on_bad_sample="skip")
    def p():
        number = fn.testing.counting_reader(count=12)
        image = fn.testing.big_image(number)
        # Sample 1 is handed on as it is and fails then; what comes for it is turned.
        flipped = fn.flip(image, horizontal=number == 4)
        return image, flipped, fn.testing.refuse_one(fn.crop(flipped, crop=(8, 16)), number)

    image, flipped, crop = p().run()
    assert [np.asarray(sample).ravel()[0] for sample in image] == [0, 4, 2, 3]
    for k, number in enumerate([0, 4, 2, 3]):
        whole = big(number)[:, ::-1] if number == 4 else big(number)
        np.testing.assert_array_equal(np.asarray(flipped[k]), whole)
        np.testing.assert_array_equal(np.asarray(crop[k]), whole[6:14, 4:20])


@operator("testing.refuse_one", inputs=(Input("value"), Input("number")), hidden=True)
class RefuseOne(SampleOperator):
    """Hand on what does not come with a 1."""

    def infer(self, value, number):
        return value

    def cpu(self, c, value, number):
        if number == 1:
            raise ValueError("one")
        return value


def test_replace_repeats_memory_of_its_own():
    images, labels = fed_images().run()
    images.at(1)[:] = 7
    assert firsts([images]) == [[0, 7, 50, 200]]
    assert images.is_dense_tensor()
    assert labels.as_array().tolist() == [0, 1, 1, 3]


@pipeline_def(batch_size=4, num_threads=2, device_id=None, on_bad_sample="replace")
def fed_images():
    encoded, label = fn.external_source(lambda: (FILES, np.arange(4)), num_outputs=2)
    return fn.decoders.image(encoded), label


def test_a_step_on_lazy_values_reports_its_own_failures():
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, on_bad_sample="replace")
    def p():
        encoded = fn.external_source(lambda: FILES)
        return fn.resize(fn.decoders.image(encoded), size=(4, 4))  # which asks for the pixels

    pipe = p()
    assert firsts(pipe.run()) == [[0, 50, 50, 200]]
    for bad in pipe.bad_samples:
        assert (bad.operator, bad.index) == ("fn.decoders.image", 2)
    assert pipe.bad_samples


@pytest.mark.parametrize("policy", ["skip", "replace"])
@pytest.mark.parametrize("readers", [1, 2])
def test_where_all_are_bad_the_first_one_is_named(tmp_path, policy, readers):
    files = []
    for k in range(3):
        files.append(str(tmp_path / f"{k}.jpg"))
        (tmp_path / f"{k}.jpg").write_bytes(b"letter %d" % k)
    pipe = Pipeline(2, 1, None, on_bad_sample=policy)
    with pipe:
        read = [fn.readers.file(files=files)[0] for _ in range(readers)]
        pipe.set_outputs(*map(fn.decoders.image, read))
    with pytest.raises(
        errors.NoGoodSampleError,
        match=r"bad.*The first bad one is \S*0\.jpg \(in operator `fn\.decoders\.image`\): "
        r"The data \(8 bytes\).*no known image format",
    ):
        pipe.run()


def test_where_nothing_makes_up_for_a_bad_sample_it_is_named():
    pipe = Pipeline(2, 1, None, on_bad_sample="skip")
    with pipe:
        encoded = fn.external_source(lambda: [np.full(9, 7, np.uint8)] * 2)
        pipe.set_outputs(fn.decoders.image(encoded))
    with pytest.raises(errors.NoGoodSampleError, match=r"bad one is sample 0 .*no known image"):
        pipe.run()
