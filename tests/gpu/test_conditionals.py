"""Conditions in pipelines whose branches are on the GPU, beside those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types


def images():
    return [
        np.full((4, 6, 3), k, np.uint8) + np.arange(6, dtype=np.uint8)[:, None] for k in range(5)
    ]


@pipeline_def(batch_size=5, num_threads=2, enable_conditionals=True, seed=5)
def conditional(device):
    image = fn.external_source(images, layout="HWC")
    number = fn.external_source(lambda: [np.int32(k) for k in range(5)])
    if device == "gpu" and number >= 0:
        image = image.gpu()
    elif device == "gpu":
        image = image.gpu() + types.Constant(1).uint8()
    if number > 2:
        image = fn.flip(image)
    elif number == 1:
        image = image + types.Constant(100).uint8()
        if fn.random.coin_flip(dtype=types.BOOL) or number == 1:
            image = fn.flip(image, horizontal=0, vertical=1)
    return image, 1 if number > 3 else 2


def test_as_on_the_cpu():
    found = []
    for device, device_id in (("cpu", None), ("gpu", 0)):
        outputs = conditional(device, device_id=device_id).run()
        found.append([np.asarray(s) for o in outputs for s in o.as_cpu()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [int(s) for s in found[0][5:]] == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("what", ["if", "and", "not"])
def test_conditions_are_on_the_cpu(what):
    def define():
        x = fn.external_source(lambda: [np.bool_(True)]).gpu()
        if what == "if":
            return 1 if x else 2
        return (x and True) if what == "and" else not x

    with pytest.raises(errors.MisusedArgumentError, match=r"test_conditionals.*\.cpu\(\)"):
        pipeline_def(define, enable_conditionals=True)(batch_size=1, num_threads=1, device_id=0)


def _rank(x, n):
    return fn.expand_dims(x, axes=[0]) if n > 0 else x


def _type(x, n):
    if n > 0:
        x = fn.cast(x, dtype=types.FLOAT)
    return fn.flip(x)


def _misfit(x, n):
    if n > 0:
        x = fn.pad(fn.squeeze(x, axes=[1]))
    return x, n


def _nested(x, n):
    if n > 0:
        y = fn.cast(x, dtype=types.INT16) if n > 1 else fn.reshape(x, shape=[-1])
    else:
        y = fn.expand_dims(x, axes=[0])
    return y


def _parts(x, n):
    holds = n > 0
    part, other = fn._conditional.split(x, predicate=holds)
    one = fn.squeeze(part, axes=[1])
    return one, other, fn._conditional.merge(one, other, predicate=holds)


def _uploaded(x, n):
    """The branches are on the CPU, and what is behind them on the GPU."""
    if n > 0:
        y = fn.expand_dims(x.cpu(), axes=[0])
    else:
        y = x.cpu()
    return (y.gpu() if x.device == "gpu" else y) + types.Constant(1).uint8()


FIT = _rank, _type, _nested, _uploaded
"""Definitions of which all branches can be taken."""


@pytest.mark.sweep
@pytest.mark.parametrize("define", [_rank, _type, _misfit, _nested, _parts, _uploaded])
@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_types_follow_from_who_takes_a_branch(define, workers):
    """Which types a branch gives, and whether it fits, is judged batch by batch."""

    def results(device, numbers):
        def definition():
            x = fn.external_source(images, layout="HWC")
            n = fn.external_source(source=iter([np.array(v, np.int32) for v in numbers]))
            return define(x.gpu() if device == "gpu" else x, n)

        options = {"batch_size": 5, "num_threads": 2, "enable_conditionals": True}
        where = {"device_id": 0 if device == "gpu" else None, "workers": workers}
        pipe = pipeline_def(definition, **options, **where, prefetch_queue_depth=1)()
        found = []
        for _ in numbers:
            try:
                outputs = pipe.run()
            except errors.HeadraceError as error:
                found.append(type(error))
                break
            found.append(
                [
                    (str(o.dtype), o.layout(), [np.asarray(s).tolist() for s in o.as_cpu()])
                    if len(o)
                    else "nothing"
                    for o in outputs
                ]
            )
        return found

    nobody, everybody, some = [0] * 5, [1] * 5, [0, 1, 0, 1, 2]
    for numbers in ([nobody, everybody, nobody], [everybody, nobody], [nobody, some], [[2] * 5]):
        on_gpu, on_cpu = results("gpu", numbers), results("cpu", numbers)
        assert on_gpu == on_cpu
        assert isinstance(on_cpu[0], list) == (numbers[0] is nobody or define in FIT)


@pytest.mark.parametrize("merged_by", [[True, False, True, False, True], [True] * 5])
def test_parts_that_are_merged_by_another_predicate(merged_by):
    chosen = np.array([True, False, True, False, True])

    @pipeline_def(batch_size=5, num_threads=2, device_id=0)
    def define():
        p, q = (fn.external_source([np.array(v)]) for v in (chosen, merged_by))
        parts = fn._conditional.split(fn.external_source(images, layout="HWC").gpu(), predicate=p)
        return fn._conditional.merge(fn.flip(parts[0]), parts[1], predicate=q)

    if all(merged_by):
        with pytest.raises(errors.ArgumentValueError, match=r"True .* second of the two parts"):
            define().run()
        return
    (found,) = define().run()
    for flipped, image, sample in zip(chosen, images(), found.as_cpu(), strict=True):
        np.testing.assert_array_equal(sample, image[:, ::-1] if flipped else image)
