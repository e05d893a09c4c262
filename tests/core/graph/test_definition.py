"""Defining a pipeline: what may be returned, named, shared, and what errors say."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, math, ops, pipeline_def, types
from headrace.pipeline import DataNode, do_not_convert


def feed(**keywords):
    return fn.external_source(source=lambda: np.arange(6, dtype=np.int32).reshape(2, 3), **keywords)


def test_bare_decorator_and_arguments_at_the_call():
    @pipeline_def
    def p(factor, *, offset=0):
        """My pipeline."""
        return feed() * factor + offset

    assert p.__doc__ == "My pipeline."
    pipe = p(2, offset=1, batch_size=2, num_threads=1)
    assert isinstance(pipe, Pipeline)
    assert pipe.run()[0].as_array().tolist() == [[1, 3, 5], [7, 9, 11]]


def test_the_call_wins_over_the_decorator():
    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def p():
        return feed()

    assert p(num_threads=3, seed=7).num_threads == 3
    assert p(seed=7).seed == 7


@pytest.mark.parametrize(
    ("result", "expected"),
    [(3, [3, 3]), (2.5, [2.5, 2.5]), (True, [True, True]), ([1, 2], [[1, 2]] * 2)],
    ids=["int", "float", "bool", "list"],
)
def test_constants_as_outputs(result, expected):
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        return (result,)

    out = p().run()[0]
    assert out.as_array().tolist() == expected


def test_one_edge_twice_and_unused_operators():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        x = feed()
        fn.external_source(source=lambda: pytest.fail("is not needed"))
        return x, x

    a, b = p().run()
    np.testing.assert_array_equal(a.as_array(), b.as_array())


@pytest.mark.parametrize(
    ("result", "error", "match"),
    [
        (lambda: [feed()], TypeError, "nested `DataNode`"),
        (lambda: "text", TypeError, "Illegal output type"),
        (lambda: None, NotImplementedError, "no outputs"),
    ],
    ids=["list", "text", "none"],
)
def test_illegal_outputs(result, error, match):
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        return result()

    pipe = p()
    with pytest.raises(error, match=match):
        pipe.build()


def test_variadic_keywords_and_unknown_arguments():
    @pipeline_def
    def p(**keywords):
        return feed()

    with pytest.raises(TypeError, match="variadic"):
        p()

    @pipeline_def
    def q(mine):
        return feed()

    with pytest.raises(TypeError, match=r"`foo`.*mine"):
        q(1, foo=3)
    with pytest.raises(TypeError, match="foo"):
        pipeline_def(foo=1)(lambda: 0)
    with pytest.raises(ValueError, match="do_not_convert"):
        pipeline_def(do_not_convert(lambda: 0))


def test_subclass_with_define_graph_and_set_outputs():
    class Mine(Pipeline):
        def define_graph(self):
            self.x = feed()
            return self.x + 1

    assert Mine(2, 1).run()[0].as_array()[0].tolist() == [1, 2, 3]
    pipe = Pipeline(batch_size=2, num_threads=1)
    with pipe:
        assert Pipeline.current() is pipe
        pipe.set_outputs(feed(), feed() * 2)
    assert Pipeline.current() is None
    assert pipe.num_outputs == 2
    with pytest.raises(NotImplementedError, match="outputs"):
        Pipeline(2, 1).build()


def test_names():
    pipe = Pipeline(batch_size=2, num_threads=1)
    with pipe:
        x = feed(name="mine")
        assert x.name == "mine"
        assert fn.copy(x).name.startswith("__Copy_")
        with pytest.raises(RuntimeError, match='Two operators are named "mine"'):
            feed(name="mine")


def test_nodes_of_another_pipeline():
    with Pipeline(batch_size=2, num_threads=1):
        foreign = feed()
    pipe = Pipeline(batch_size=2, num_threads=1)
    with pipe:
        pipe.set_outputs(foreign + 1)
    with pytest.raises(RuntimeError, match="belongs to another pipeline"):
        pipe.build()


def test_nodes_made_outside_of_any_pipeline():
    x = fn.copy(feed())
    pipe = Pipeline(batch_size=2, num_threads=1)
    pipe.set_outputs(x)
    assert pipe.run()[0].as_array()[1].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "use",
    [bool, len, float, int, lambda x: 1 in x, lambda x: 0 < x < 3],
    ids=["bool", "len", "float", "int", "in", "chained"],
)
def test_edges_have_no_value(use):
    with Pipeline(2, 1), pytest.raises(TypeError, match=r"DataNode.*test_definition\.py"):
        use(feed())


def test_edges_say_what_they_are():
    with Pipeline(2, 1):
        x = feed(name="here")
        assert str(x) == 'DataNode(name="here", device="cpu", source="here", index="0")'
        assert isinstance(x, DataNode)
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        assert x.cpu() is x


def test_without_a_gpu_the_error_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    pipes = [Pipeline(2, 1), Pipeline(2, 1), Pipeline(2, 1, device_id=0)]
    uses = (lambda x: x.gpu(), lambda x: fn.copy(x.gpu()), lambda x: x)
    for pipe, use in zip(pipes, uses, strict=True):
        with pipe:
            pipe.set_outputs(use(feed()))
    for pipe in pipes:
        with pytest.raises(errors.GpuNotAvailableError, match="device_id=None") as caught:
            pipe.build()
        assert "pip install 'headrace[cuda13]'" in str(caught.value)
        assert (f"created at {__file__}" in str(caught.value)) is (pipe is not pipes[-1])


def test_multiple_input_sets():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        a, b = fn.copy([feed(), feed() + 1])
        only = fn.copy([feed()])
        return a, b, only

    outs = [o.as_array()[0].tolist() for o in p().run()]
    assert outs == [[0, 1, 2], [1, 2, 3], [0, 1, 2]]


def test_operator_classes():
    with Pipeline(2, 1) as pipe:
        copy = ops.Copy(device="cpu")
        cast = ops.Cast(dtype=types.FLOAT)
        pipe.set_outputs(cast(copy(feed())), ops.Compose([copy, cast])(feed()))
        with pytest.raises(ValueError, match="already specified in `__init__`"):
            cast(feed(), dtype=types.INT32)
        with pytest.raises(TypeError):
            ops.Copy(feed())
    assert [o.dtype for o in pipe.run()] == [types.FLOAT, types.FLOAT]


def test_arithmetic_is_merged_without_a_change(tmp_path):
    def graph():
        x = feed()
        y = (x * 3 + 1) / 7
        shared = y - 2
        return math.sqrt(math.abs(shared)) * shared, y, -(x // 2) % 3

    results = []
    for fuse in (True, False):
        pipe = pipeline_def(graph, batch_size=2, num_threads=2)(fuse=fuse)
        results.append([o.as_array() for o in pipe.run()])
        pipe.save_graph_to_dot_file(str(tmp_path / "g.dot"), show_tensors=True, use_colors=True)
    for fused, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(fused, plain)
    text = (tmp_path / "g.dot").read_text()
    assert text.startswith("digraph")
    assert "fn.external_source" in text
    with pytest.raises(RuntimeError, match="Cannot open"):
        pipe.save_graph_to_dot_file(str(tmp_path / "missing" / "g.dot"))


def test_sums_of_thousands():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        x = feed()
        for _ in range(3000):
            x = x + 1
        return x

    assert p().run()[0].as_array()[0].tolist() == [3000, 3001, 3002]


def test_random_streams_count_random_operators_only():
    def draw(extra):
        @pipeline_def(batch_size=3, num_threads=1, seed=11)
        def p():
            if extra:
                fn.constant(idata=1)
                feed()
            return fn.random.uniform(), fn.random.uniform()

        return [o.as_array().tolist() for o in p().run()]

    plain, with_others = draw(False), draw(True)
    assert plain == with_others
    assert plain[0] != plain[1]


def test_seeds():
    def draw(**keywords):
        seed = keywords.pop("op_seed", None)

        @pipeline_def(batch_size=3, num_threads=1, **keywords)
        def p():
            return fn.random.uniform(seed=seed)

        return p().run()[0].as_array().tolist()

    assert draw(seed=1) == draw(seed=1) != draw(seed=2)
    assert draw(op_seed=5, seed=1) == draw(op_seed=5, seed=2)
    assert draw(op_seed=-1) == draw(op_seed=-1)
    assert draw() != draw()
    with pytest.warns(UserWarning, match="negative seed"):
        draw(seed=-1)


def test_unbuilt_argument_errors_are_the_librarys():
    pipe = Pipeline(2, 1)
    with pipe:
        pipe.set_outputs(fn.cast(feed()))
    with pytest.raises(errors.HeadraceError, match="`dtype` is missing"):
        pipe.build()
