"""Errors: where they come up, what they say, and that work goes on after them."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import cv2
import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.errors import HeadraceError, OperatorError

LATER = [ndd.EvalMode.deferred, ndd.EvalMode.eager]
AT_ONCE = [ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full]


def corrupt():
    good = cv2.imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].reshape(-1)
    return ndd.batch([good, np.zeros(10, np.uint8), good])


def line_here():
    return sys._getframe(1).f_lineno


@pytest.mark.parametrize("mode", LATER, ids=lambda m: m.name)
def test_an_error_comes_up_at_the_first_use_and_names_the_line_of_the_call(mode):
    with mode:
        images = ndd.decoders.image(corrupt())
        line = line_here() - 1
        with pytest.raises(RuntimeError) as caught:
            images.evaluate()
        with pytest.raises(RuntimeError):
            images.evaluate()  # again, each time
    error = caught.value
    assert f"{__file__}:{line}" in str(error)
    assert "sample 1" in str(error)
    assert "ndd.decoders.image" in str(error)
    when = "deferred evaluation" if mode is ndd.EvalMode.deferred else "asynchronous execution"
    assert f"An error happened during {when}" in str(error)
    assert isinstance(error, HeadraceError)


@pytest.mark.parametrize("mode", AT_ONCE, ids=lambda m: m.name)
def test_an_error_comes_out_of_the_call_in_sync_modes(mode):
    with mode, pytest.raises(RuntimeError) as caught:
        ndd.decoders.image(corrupt())
    assert "sample 1" in str(caught.value)
    assert "An error happened during" not in str(caught.value)
    assert isinstance(caught.value, OperatorError)
    assert caught.value.where.sample == 1


@pytest.mark.parametrize("mode", LATER, ids=lambda m: m.name)
def test_what_depends_on_an_error_fails_with_it_and_what_does_not_is_right(mode):
    with mode:
        images = ndd.decoders.image(corrupt())
        small = ndd.resize(images, size=[4, 4])
        other = ndd.batch([[1.0], [2.0], [3.0]]) * 2
        more = other + 1
        with pytest.raises(RuntimeError, match=r"ndd\.resize") as caught:
            small.evaluate()
        assert "in operator `ndd.decoders.image`" in str(caught.value)
        assert str(caught.value).count("An error happened") == 1
        assert [t.item() for t in more.tensors] == [3.0, 5.0, 7.0]
        assert [t.item() for t in other.tensors] == [2.0, 4.0, 6.0]


def test_an_error_has_the_class_of_what_went_wrong():
    numbers = ndd.tensor([1, 2])
    with pytest.raises(ValueError, match="division by zero"):
        (numbers // 0).evaluate()
    with pytest.raises(IndexError, match="out of range"):
        numbers[5].evaluate()


@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=lambda m: m.name)
def test_arguments_are_checked_in_the_call(mode):
    image = ndd.tensor(np.zeros((4, 4, 3), np.uint8), layout="HWC")
    with mode:
        with pytest.raises(TypeError, match="unexpected keyword argument 'sizee'"):
            ndd.resize(image, sizee=3)
        with pytest.raises(ValueError, match="layout"):
            ndd.resize(ndd.tensor(np.zeros((4, 4), np.uint8), layout="XY"), size=[2, 2])
        with pytest.raises(ValueError, match="3 indices"):
            ndd.tensor([[1]])[0, 0, 0]
        with pytest.raises(ValueError, match="batch size"):
            ndd.batch([1, 2]) + ndd.batch([1, 2, 3])
        with pytest.raises(OverflowError):
            image + 2**40
        with pytest.raises(TypeError, match="same for all samples"):
            ndd.resize(image, size=[2, 2], antialias=ndd.tensor(True))


def test_the_loop_goes_on_after_an_error():
    for number in range(20):
        bad = number % 3 == 1
        files = corrupt() if bad else ndd.batch([np.array(corrupt().tensors[0])] * 3)
        images = ndd.decoders.image(files)
        if bad:
            with pytest.raises(RuntimeError):
                images.evaluate()
        else:
            assert images.shape == [(8, 8, 3)] * 3


def test_an_error_that_nobody_looks_at_bothers_nobody():
    with ndd.EvalContext(num_threads=1) as context:
        ndd.decoders.image(corrupt())
        with ndd.EvalMode.deferred:
            kept = ndd.decoders.image(corrupt())
        context.evaluate_all()
    with pytest.raises(RuntimeError):
        kept.evaluate()


def test_what_an_operator_refuses_names_it_in_the_call():
    signal = ndd.tensor([0.0] * 600)
    for call, name in (
        (lambda: ndd.spectrogram(signal, nfft=-2), "ndd.spectrogram"),
        (lambda: ndd.random.uniform(range=[1, 0]), "ndd.random.uniform"),
        (lambda: ndd.mfcc(signal, n_mfcc=0), "ndd.mfcc"),
    ):
        with pytest.raises(OperatorError) as caught:
            call()
        assert caught.value.where.operator == name
        assert caught.value.where.user_line.startswith(__file__)
        assert f"in operator `{name}`" in str(caught.value)


def test_a_seed_is_that_of_a_generator():
    with pytest.raises(TypeError, match=r"`rng=ndd\.random\.RNG\(seed\)`. It takes: .*rng"):
        ndd.random.uniform(range=[0, 1], seed=5)
    with pytest.raises(TypeError, match='Did you mean "batch_size"'):
        ndd.random.uniform(range=[0, 1], batch_sise=5)


def test_lines_of_the_library_are_not_shown_where_a_value_is_printed():
    wrong = ndd.batch([[1, 2], [3, 4]]) + np.ones(3)
    for call in (
        lambda: repr(wrong),
        lambda: ndd.random.RNG("a"),
        lambda: ndd.set_num_threads(0),
    ):
        with pytest.raises(HeadraceError) as caught:
            call()
        assert {entry.path for entry in caught.traceback} == {Path(__file__)}


def test_a_way_out_is_one_of_this_mode():
    data = ndd.tensor(np.ones((4, 4, 3), np.bool_), layout="HWC")
    with pytest.raises(TypeError, match=r"Use `ndd\.cast` to convert it") as error:
        ndd.resize(data, size=(2, 2)).evaluate()
    assert "`fn." not in str(error.value)


@pytest.mark.parametrize("mode", [*AT_ONCE, *LATER], ids=lambda m: m.name)
def test_an_error_of_the_call_says_its_reason_once(mode):
    with mode, pytest.raises(TypeError, match=r"Use `ndd\.cast`") as caught:
        ndd.resize(ndd.tensor(np.zeros((4, 4, 3), bool)), size=[2, 2]).evaluate()
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("allowed are:") == 1
    assert "fn.cast" not in text
