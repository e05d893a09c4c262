"""The operators of docs/operators.md, exactly as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, operators, ops, types
from headrace.operators import Input, Planned, SampleOperator, operator
from headrace.tensors.rows import Rows

_PAGE = Path(__file__).parents[3] / "docs" / "operators.md"


@pytest.fixture(scope="module", autouse=True)
def declared():
    blocks = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in (blocks[0], blocks[2]):
        exec(compile(block, str(_PAGE), "exec"), names)  # the documentation is the code under test
    return names


def run(graph, images, layout="HWC"):
    pipe = Pipeline(batch_size=len(images), num_threads=2, device_id=None, seed=1)
    with pipe:
        pipe.set_outputs(graph(fn.external_source(source=lambda: images, layout=layout)))
    return pipe.run()[0]


IMAGES = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10, np.full((1, 1, 3), 200, np.uint8)]


@pytest.mark.parametrize("threshold", [100.0, 0.0])
def test_constant_argument(threshold):
    out = run(lambda x: fn.solarize(x, threshold=threshold), IMAGES)
    for got, image in zip(out, IMAGES, strict=True):
        np.testing.assert_array_equal(got, np.where(image > threshold, 255 - image, image))
    assert out.layout() == "HWC"


def test_one_value_for_each_sample():
    thresholds = np.array([50, 250], np.float32)
    out = run(
        lambda x: fn.solarize(x, threshold=fn.external_source(source=lambda: thresholds)), IMAGES
    )
    np.testing.assert_array_equal(out.at(0), np.where(IMAGES[0] > 50, 255 - IMAGES[0], IMAGES[0]))
    np.testing.assert_array_equal(out.at(1), IMAGES[1])


def test_class_face_and_documentation():
    out = run(lambda x: ops.Solarize(threshold=1.0)(x), IMAGES)
    np.testing.assert_array_equal(out.at(1), 255 - IMAGES[1])
    assert "Level above which pixels are inverted" in fn.solarize.__doc__
    assert "threshold" in str(fn.solarize.__signature__)


def test_other_output_type():
    out = run(lambda x: fn.luminance(x), IMAGES)
    assert (out.dtype, out.layout(), out.shape()) == (types.FLOAT, "HW", [(2, 4), (1, 1)])
    assert out.at(1)[0, 0] == pytest.approx(200)


@pytest.mark.parametrize(
    ("call", "layout", "error", "match"),
    [
        (
            lambda x: fn.solarize(x),
            "CHW",
            ValueError,
            'layout "CHW" does not match any of the allowed.*"HWC"',
        ),
        (lambda x: fn.solarize(x, threshold="a"), "HWC", TypeError, "threshold.*expected a number"),
        (lambda x: fn.solarize(x, level=1), "HWC", KeyError, '"level" is not defined'),
        (lambda x: fn.solarize(x, x), "HWC", ValueError, "expects 1 input, but received 2"),
        (lambda x: fn.solarize(x, threshold=x), "HWC", ValueError, "threshold.*scalar.*sample 0"),
    ],
    ids=["layout", "argument type", "unknown argument", "inputs", "tensor argument"],
)
def test_errors_say_what_and_where(call, layout, error, match):
    with pytest.raises(error, match=re.compile(match, re.DOTALL)) as caught:
        run(call, IMAGES, layout)
    assert isinstance(caught.value, errors.HeadraceError)
    assert "test_user_operator.py" in str(caught.value)


def test_wrong_output_type_is_found():
    @operator("testing.wrong_type", inputs=Input(), hidden=True)
    def wrong(xp, x):
        """Say uint8, give float64."""
        return x * 0.5

    with pytest.raises(TypeError, match="float64 where its declaration says uint8"):
        run(fn.testing.wrong_type, IMAGES)


@pytest.mark.parametrize(
    ("output", "error", "match"),
    [
        (lambda x: None, TypeError, "returned None"),
        (lambda x: (x, x), ValueError, "returned 2 outputs where its declaration says 1"),
        (lambda x: x[0], ValueError, r"shape \(4, 3\) where its declaration says 3 dimensions"),
        (lambda x: 7, TypeError, "type int64 where its declaration says uint8"),
    ],
    ids=["nothing", "a tuple", "a rank", "a number"],
)
def test_wrong_outputs_are_found_before_another_operator_gets_them(output, error, match):
    @operator("testing.give_back", inputs=Input(), hidden=True)
    def give_back(xp, x):
        """Whatever `output` makes of it."""
        return output(x)

    with pytest.raises(error, match=match):
        run(lambda x: fn.copy(fn.testing.give_back(x)), IMAGES)


def test_a_class_that_returns_too_many_outputs():
    @operator("testing.twice", inputs=Input(), hidden=True)
    class Twice(SampleOperator):
        """Two outputs where one is declared."""

        def cpu(self, c, *inputs):
            return inputs[0], inputs[0]

    with pytest.raises(ValueError, match="made 2 outputs where its declaration says 1"):
        run(fn.testing.twice, IMAGES)


@pytest.mark.parametrize("follows", [False, True], ids=["last", "followed"])
@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("kind", ["cpu", "chunk", "light"])
@pytest.mark.parametrize(
    ("made", "error", "match"),
    [
        (
            lambda x: np.zeros((2, 4, 3), np.uint8),
            ValueError,
            r"shape \(2, 4, 3\) where its `plan`",
        ),
        (lambda x: np.zeros(x.shape, np.int8), TypeError, "int8 where its declaration says uint8"),
    ],
    ids=["shape", "type"],
)
def test_a_class_that_breaks_its_plan(kind, made, error, match, count, follows):
    """What follows goes by plans, and would read memory of other samples."""

    @operator("testing.breaks_plan", inputs=Input(layouts=("HWC",)), hidden=True)
    class BreaksPlan(SampleOperator):
        """Say one shape and type, give another."""

        chunked, chunks_light = kind == "chunk", kind == "light"

        def plan(self, c, x):
            return Planned(x.shapes.copy())

        def cpu(self, c, x):
            return made(x)

        def cpu_chunk(self, c, xs):
            return Rows([made(x) for x in xs])

    images = [np.full((3, 4, 3), 7, np.uint8)] * count
    done = fn.flip if follows else lambda x: x
    with pytest.raises(error, match=match) as caught:
        run(lambda x: done(fn.testing.breaks_plan(x)), images)
    assert "fn.testing.breaks_plan" in str(caught.value)


def test_an_operator_can_be_declared_again():
    """As happens when a cell of a notebook is run a second time."""
    for summand in (1, 2):

        @operator("testing.add_some", inputs=Input(), hidden=True)
        def add_some(xp, x, summand=summand):
            """Add a number."""
            return x + xp.uint8(summand)

        assert run(fn.testing.add_some, IMAGES).at(0)[0, 0, 0] == summand
        assert run(lambda x: ops.testing.AddSome()(x), IMAGES).at(0)[0, 0, 0] == summand


def test_names_for_declarations_are_not_names_of_element_types():
    assert not set(operators.__all__) & set(types.__all__)


def _same(xp, image):
    """Nothing."""
    return image


def test_wrong_declarations_are_refused_at_once():
    plain: type = type("Plain", (), {})
    for declare, way in (
        (lambda: operator("My Op", inputs=Input()), "identifier"),
        (lambda: operator("mistakes.class", inputs=Input()), "identifier"),
        (lambda: operator(_same), r'`@operator\("_same"'),
        (lambda: operator("mistakes.a", inputs="image"), r'`Input\("image"'),
        (lambda: operator("mistakes.a", input=Input()), 'Did you mean "inputs"'),
        (lambda: operator("mistakes.a", inputs=Input(), devices=("cuda",)), '"gpu"'),
        (lambda: operator("mistakes.a", inputs=Input(), args=[("step", 2)]), "list of `Arg`"),
        (lambda: operator("mistakes.a", args=[operators.Arg("step", int, 2)]), "`IntArg`"),
        (lambda: Input("image", layouts="HWC"), r'`layouts=\("HWC",\)`'),
        (lambda: operator("mistakes.a", inputs=Input())(plain), "SampleOperator"),
    ):
        with pytest.raises(errors.HeadraceError, match=way):
            declare()


def test_what_infer_and_plan_return_is_checked():
    class Planless(SampleOperator):
        """Nothing."""

        def infer(self, image):
            return image

        def plan(self, c, image):
            return [3]

        def cpu(self, c, image):
            return image

    operator("mistakes.inferring", inputs=Input(), infer=lambda image: "HWC")(_same)
    operator("mistakes.planning", inputs=Input())(Planless)
    for name, way in (
        ("inferring", r"`Spec\(FLOAT, 2"),
        ("planning", r"`Planned\(shapes, table\)`"),
    ):
        call = getattr(fn.mistakes, name)
        with pytest.raises(errors.ArgumentTypeError, match=way) as caught:
            run(lambda x, call=call: call(x), IMAGES)
        assert caught.value.where.user_line.startswith(__file__)
