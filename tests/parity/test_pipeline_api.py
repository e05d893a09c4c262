"""The pipeline beside DALI's: arguments, definition, ways of running, and what misuse raises."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same, attempt

BATCH = np.arange(6, dtype=np.int32).reshape(2, 3)


def feed(lib, **keywords):
    return lib.fn.external_source(source=lambda: BATCH, **keywords)


def built(lib, **settings):
    """Outputs of a pipeline with these settings."""
    return lib.pipe(lambda: feed(lib), **settings).run()


def until_stop(pipe, most=8):
    """First values of the batches up to the end of the data."""
    found = []
    with contextlib.suppress(StopIteration):
        while len(found) < most:
            found += [np.asarray(pipe.run()[0].at(0)).reshape(-1)[:1].tolist()]
    return found


constructor = Table()

constructor(
    defaults=lambda lib: built(lib),
    no_batch_size=lambda lib: built(lib, batch_size=None),
    batch_size_zero=lambda lib: built(lib, batch_size=0),
    batch_size_negative=lambda lib: built(lib, batch_size=-2),
    no_batch_size_is_fine_until_built=lambda lib: (
        lib.Pipeline(num_threads=1, device_id=None) and None
    ),
    numpy_batch_size=lambda lib: built(lib, batch_size=np.int64(2)),
    batch_size_of_another_type=lambda lib: built(lib, batch_size=2.0),
    batch_size_text=lambda lib: built(lib, batch_size="2"),
    batch_size_true=lambda lib: lib.pipe(lambda: 1, batch_size=True).run(),
    num_threads_of_another_type=lambda lib: built(lib, num_threads=2.0),
    device_of_another_type=lambda lib: built(lib, device_id="cpu"),
    num_threads_zero=lambda lib: built(lib, num_threads=0),
    num_threads_negative=lambda lib: built(lib, num_threads=-1),
    seed_none=lambda lib: lib.pipe(lambda: feed(lib), seed=None).seed,
    seed_kept=lambda lib: lib.pipe(lambda: feed(lib), seed=12).seed,
    seed_of_numpy=lambda lib: lib.pipe(lambda: feed(lib), seed=np.int64(5)).seed,
    seed_negative=lambda lib: lib.pipe(lambda: feed(lib), seed=-3).seed,
    seed_large=lambda lib: built(lib, seed=2**62),
    seed_text=lambda lib: built(lib, seed="1"),
    not_pipelined=lambda lib: built(lib, exec_pipelined=False),
    not_pipelined_nor_async=lambda lib: built(lib, exec_pipelined=False, exec_async=False),
    not_async=lambda lib: built(lib, exec_async=False),
    dynamic=lambda lib: built(lib, exec_dynamic=True),
    not_dynamic=lambda lib: built(lib, exec_dynamic=False),
    dynamic_and_separated=lambda lib: built(
        lib, exec_dynamic=True, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 2}
    ),
    separated=lambda lib: built(lib, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}),
    separated_longer_on_gpu=lambda lib: built(
        lib, prefetch_queue_depth={"cpu_size": 1, "gpu_size": 3}
    ),
    separated_zero=lambda lib: built(lib, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 0}),
    separated_float=lambda lib: built(lib, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 1.5}),
    separated_more_keys=lambda lib: built(
        lib, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 2, "more": 1}
    ),
    separated_and_not_async=lambda lib: built(
        lib, exec_async=False, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}
    ),
    separated_wrong_keys=lambda lib: built(lib, prefetch_queue_depth={"cpu": 3, "gpu": 2}),
    depth_zero=lambda lib: built(lib, prefetch_queue_depth=0),
    depth_negative=lambda lib: built(lib, prefetch_queue_depth=-1),
    depth_float=lambda lib: built(lib, prefetch_queue_depth=2.0),
    depth_tuple=lambda lib: built(lib, prefetch_queue_depth=(2, 2)),
    depth_text=lambda lib: built(lib, prefetch_queue_depth="2"),
    depth_five=lambda lib: built(lib, prefetch_queue_depth=5),
    bytes_per_sample=lambda lib: built(lib, bytes_per_sample=1000),
    set_affinity=lambda lib: built(lib, set_affinity=True),
    max_streams=lambda lib: lib.pipe(lambda: feed(lib), max_streams=3).max_streams,
    priority=lambda lib: (
        lib.pipe(lambda: feed(lib), default_cuda_stream_priority=-1).default_cuda_stream_priority
    ),
    experimental_exec_dynamic=lambda lib: (
        lib.pipe(lambda: feed(lib), experimental_exec_dynamic=True).exec_dynamic
    ),
    experimental_exec_dynamic_false=lambda lib: (
        lib.pipe(lambda: feed(lib), experimental_exec_dynamic=False).exec_dynamic
    ),
    both_exec_dynamic=lambda lib: (
        lib.pipe(lambda: feed(lib), experimental_exec_dynamic=True, exec_dynamic=False).exec_dynamic
    ),
    enable_memory_stats=lambda lib: built(lib, enable_memory_stats=True),
    py_num_workers_unused=lambda lib: built(lib, py_num_workers=0),
    py_start_method=lambda lib: built(lib, py_start_method="spawn"),
    py_start_method_bogus_unused=lambda lib: built(lib, py_start_method="bogus"),
    py_callback_pickler_with_fork=lambda lib: built(lib, py_callback_pickler=(1, 2)),
    py_callback_pickler_with_spawn=lambda lib: built(
        lib, py_start_method="spawn", py_callback_pickler=__import__("pickle")
    ),
    py_callback_pickler_wrong=lambda lib: built(
        lib, py_start_method="spawn", py_callback_pickler=3
    ),
    unknown_argument=lambda lib: lib.Pipeline(2, 1, None, nonsense=3),
    too_many_positional=lambda lib: lib.Pipeline(
        2, 1, None, 1, True, 2, True, 0, False, None, None, False
    ),
    eleven_positional=lambda lib: (
        lib.Pipeline(2, 1, None, 1, True, 2, True, 0, False, None, None).seed
    ),
    numbers_of_policies=lambda lib: [
        [(n, int(m.value)) for n, m in e.__members__.items()]
        for e in (lib.module.StreamPolicy, lib.module.OperatorConcurrency)
    ],
    stream_policy=lambda lib: str(
        lib.pipe(lambda: feed(lib), stream_policy=lib.module.StreamPolicy.SINGLE).stream_policy.name
    ),
    concurrency=lambda lib: str(
        lib.pipe(
            lambda: feed(lib), concurrency=lib.module.OperatorConcurrency.FULL
        ).concurrency.name
    ),
    dtype_of_output=lambda lib: built(lib, output_dtype=lib.types.INT32),
    dtype_list=lambda lib: built(lib, output_dtype=[lib.types.INT32]),
    dtype_list_of_none=lambda lib: built(lib, output_dtype=[None]),
    dtype_mismatch=lambda lib: built(lib, output_dtype=lib.types.FLOAT),
    dtype_wrong_length=lambda lib: built(lib, output_dtype=[lib.types.INT32, lib.types.INT32]),
    dtype_no_type=lambda lib: built(lib, output_dtype=lib.types.NO_TYPE),
    dtype_no_type_in_a_list=lambda lib: built(lib, output_dtype=[lib.types.NO_TYPE]),
    dtype_unknown=lambda lib: built(lib, output_dtype="int23"),
    dtype_int=lambda lib: built(lib, output_dtype=3),
    ndim_of_output=lambda lib: built(lib, output_ndim=1),
    ndim_list=lambda lib: built(lib, output_ndim=[1]),
    ndim_mismatch=lambda lib: built(lib, output_ndim=2),
    ndim_negative=lambda lib: built(lib, output_ndim=-1),
    ndim_negative_in_a_list=lambda lib: built(lib, output_ndim=[-1]),
    ndim_float=lambda lib: built(lib, output_ndim=1.0),
    ndim_text_in_a_list=lambda lib: built(lib, output_ndim=["1"]),
    ndim_wrong_length=lambda lib: built(lib, output_ndim=[1, 1]),
    ndim_empty_list=lambda lib: built(lib, output_ndim=[]),
    layout_of_output=lambda lib: lib.pipe(lambda: feed(lib, layout="C"), output_layout="C").run(),
    layout_missing=lambda lib: built(lib, output_layout="C"),
    layout_empty=lambda lib: built(lib, output_layout=""),
    layout_empty_against_one=lambda lib: lib.pipe(
        lambda: feed(lib, layout="C"), output_layout=""
    ).run(),
    layout_list=lambda lib: lib.pipe(lambda: feed(lib, layout="C"), output_layout=["C"]).run(),
    layout_number=lambda lib: built(lib, output_layout=3),
    layout_wrong_length=lambda lib: built(lib, output_layout=["C", "C"]),
    mixed_checks=lambda lib: lib.pipe(
        lambda: (feed(lib), feed(lib)), output_dtype=[None, lib.types.INT32], output_ndim=[1, None]
    ).run(),
    second_output_mismatch=lambda lib: lib.pipe(
        lambda: (feed(lib), feed(lib)), output_dtype=[None, lib.types.UINT8]
    ).run(),
)


@constructor
def checks_that_fail_are_repeated(lib):
    pipe = lib.pipe(lambda: feed(lib), output_ndim=3)
    return attempt(pipe.run), attempt(pipe.run)


PROPERTIES = (
    *("max_batch_size", "num_threads", "device_id", "seed", "num_outputs"),
    *("exec_pipelined", "exec_async", "exec_dynamic", "exec_separated"),
    *("prefetch_queue_depth", "cpu_queue_size", "gpu_queue_size"),
    *("set_affinity", "enable_memory_stats", "py_num_workers", "py_start_method"),
    *("is_restored_from_checkpoint", "max_streams", "default_cuda_stream_priority"),
)


@constructor
def properties(lib):
    names = PROPERTIES
    found = {}
    for settings in (
        {},
        {"exec_pipelined": False},
        {"exec_async": False},
        {"exec_dynamic": False},
        {"exec_pipelined": False, "exec_async": False},
        {"prefetch_queue_depth": 4},
        {"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 5}},
        {"set_affinity": True, "enable_memory_stats": True, "py_num_workers": 3},
        {"py_start_method": "spawn", "num_threads": 3},
    ):
        pipe = lib.pipe(lambda: (feed(lib), feed(lib)), **settings)
        found[str(settings)] = {n: getattr(pipe, n) for n in names}
    return found


@constructor
def properties_before_the_build(lib):
    pipe = lib.Pipeline(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=3)
    return pipe.max_batch_size, pipe.num_threads, pipe.cpu_queue_size, pipe.seed, pipe.empty()


@constructor
def old_name_of_the_batch_size(lib):
    return lib.pipe(lambda: feed(lib)).batch_size


@constructor
def output_descriptions(lib):
    pipe = lib.pipe(
        lambda: (feed(lib), feed(lib)), output_dtype=[lib.types.INT32, None], output_ndim=1
    )
    plain = lib.pipe(lambda: feed(lib))
    return pipe.output_dtype(), pipe.output_ndim(), plain.output_dtype(), plain.output_ndim()


@pytest.mark.parametrize("name", constructor)
def test_constructor(name):
    assert_same(constructor[name])


definition = Table()


@definition
def bare_decorator(lib):
    @lib.pipeline_def
    def mine(factor, *, offset=1):
        """Docs."""
        return feed(lib) * factor + offset

    pipe = mine(2, offset=3, batch_size=2, num_threads=1, device_id=None)
    return mine.__name__, mine.__doc__, mine._is_pipeline_def, pipe.run()


@definition
def decorator_with_settings(lib):
    @lib.pipeline_def(batch_size=2, num_threads=3, device_id=None, seed=4)
    def mine():
        return feed(lib)

    return [(p.num_threads, p.seed, p.run()) for p in (mine(), mine(num_threads=1, seed=5))]


@definition
def shadowed_argument(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def mine(batch_size):
        return feed(lib) + batch_size

    pipe = mine(batch_size=100)
    return pipe.max_batch_size, pipe.run()


@definition
def shadowed_argument_with_default(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def mine(seed=3):
        return feed(lib) + seed

    return mine().seed, mine().run(), mine(seed=9).seed, mine(9).run()


@definition
def arguments_by_position(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def mine(a, /, b, *rest, c=1):
        return feed(lib) + (a + b + sum(rest) + c)

    return mine(1, 2).run(), mine(1, 2, 3, 4, c=5).run(), mine(1, b=3).run()


@definition
def missing_argument_of_the_function(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def mine(a):
        return feed(lib) + a

    return attempt(mine), attempt(mine, 1, 2), attempt(mine, 1, a=2)


@definition
def decorated_method(lib):
    class Data:
        offset = 10

        @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def make(self, factor):
            return feed(lib) * factor + self.offset

    return Data().make(3).run()


@definition
def decorated_partial_and_lambda(lib):
    def base(a, b):
        return feed(lib) * a + b

    two = lib.pipeline_def(functools.partial(base, 2), batch_size=2, num_threads=1, device_id=None)
    one = lib.pipeline_def(lambda: feed(lib), batch_size=2, num_threads=1, device_id=None)
    return one().run(), two(b=1).run()


@definition
def experimental_decorator(lib):
    define = lib.pipeline.experimental.pipeline_def
    settings = {"batch_size": 2, "num_threads": 1, "device_id": None}
    plain = define(lambda: feed(lib), **settings)
    return plain().run(), define(debug=False, **settings)(lambda: feed(lib))().run()


definition(
    conditionals_switched_off=lambda lib: lib.pipeline_def(
        lambda: feed(lib), batch_size=2, num_threads=1, device_id=None, enable_conditionals=False
    )().run(),
    variadic_keywords=lambda lib: lib.pipeline_def(lambda **kw: 1)(),
    unknown_in_the_decorator=lambda lib: lib.pipeline_def(nonsense=1)(lambda: 1)(),
    debug_in_the_decorator=lambda lib: lib.pipeline_def(debug=True)(lambda: feed(lib))(),
    not_converted=lambda lib: lib.pipeline_def(lib.pipeline.do_not_convert(lambda: feed(lib))),
    do_not_convert_a_definition=lambda lib: lib.pipeline.do_not_convert(
        lib.pipeline_def(lambda: feed(lib))
    ),
)


def returns(value):
    """A scenario whose definition returns `value(lib)`."""
    return lambda lib: lib.pipe(lambda: value(lib)).run()


definition(
    returns_two=returns(lambda lib: (feed(lib), feed(lib) + 1)),
    returns_the_same_twice=lambda lib: lib.pipe(lambda: (x := feed(lib), x)).run(),
    returns_a_list=returns(lambda lib: [feed(lib), feed(lib)]),
    returns_a_list_of_one=returns(lambda lib: [feed(lib)]),
    returns_a_nested_tuple=returns(lambda lib: ((feed(lib), feed(lib)), feed(lib))),
    returns_a_nested_list=returns(lambda lib: (feed(lib), [feed(lib)])),
    returns_none=returns(lambda lib: None),
    returns_none_in_a_tuple=returns(lambda lib: (feed(lib), None)),
    returns_nothing_in_a_tuple=returns(lambda lib: ()),
    returns_text=returns(lambda lib: "text"),
    returns_bytes=returns(lambda lib: b"text"),
    returns_a_dict=returns(lambda lib: {"a": feed(lib)}),
    returns_a_set=returns(lambda lib: {1, 2}),
    returns_an_object=returns(lambda lib: object()),
    returns_complex=returns(lambda lib: 1j),
    returns_int=returns(lambda lib: 3),
    returns_float=returns(lambda lib: 2.5),
    returns_bool=returns(lambda lib: True),
    returns_negative=returns(lambda lib: -7),
    returns_large_int=returns(lambda lib: 2**31),
    returns_numbers=returns(lambda lib: [1, 2, 3]),
    returns_a_tuple_of_numbers=returns(lambda lib: (1, 2.5, True)),
    returns_floats=returns(lambda lib: [1, 2.5]),
    returns_bools=returns(lambda lib: [True, False]),
    returns_no_numbers=returns(lambda lib: ([],)),
    returns_nested_numbers=returns(lambda lib: [[1, 2], [3, 4]]),
    returns_a_scalar_constant=returns(lambda lib: lib.types.Constant(3)),
    returns_a_typed_constant=returns(lambda lib: lib.types.Constant(3).uint8()),
    returns_a_constant_with_dtype=returns(lambda lib: lib.types.Constant(3, lib.types.FLOAT)),
    returns_a_constant_node=returns(lambda lib: lib.types.Constant([1, 2], shape=(2, 1))),
    returns_a_constant_and_data=returns(lambda lib: (1, feed(lib))),
    **{
        f"returns_numpy_{np.dtype(t).name}": returns(lambda lib, t=t: np.array([[1, 0]], t))
        for t in "?bBhHiIlLefd"
    },
    **{
        f"returns_numpy_scalar_{np.dtype(t).name}": returns(lambda lib, t=t: np.array([1], t)[0])
        for t in "bBhHiIlLefd"
    },
    returns_numpy_0d=returns(lambda lib: np.array(3, np.int16)),
    returns_numpy_empty=returns(lambda lib: np.zeros((0, 3), np.uint8)),
    returns_numpy_fortran=returns(lambda lib: np.asfortranarray(np.arange(6).reshape(2, 3))),
    returns_numpy_reversed=returns(lambda lib: np.arange(6, dtype=np.uint8)[::-2]),
    returns_numpy_out_of_range=returns(lambda lib: np.array([2**31], np.int64)),
    returns_numpy_out_of_unsigned_range=returns(lambda lib: np.array([2**32], np.uint64)),
    returns_numpy_text=returns(lambda lib: np.array(["a"])),
    returns_numpy_complex=returns(lambda lib: np.array([1j])),
)


@definition
def current_pipeline(lib):
    seen = []

    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def mine():
        seen.append(lib.Pipeline.current())
        return feed(lib)

    pipe = mine()
    return seen[0] is pipe, lib.Pipeline.current()


@definition
def push_and_pop(lib):
    a, b = (lib.Pipeline(batch_size=2, num_threads=1, device_id=None) for _ in range(2))
    seen = [lib.Pipeline.push_current(a), lib.Pipeline.current() is a]
    seen += [lib.Pipeline.push_current(b) is a, lib.Pipeline.current() is b]
    lib.Pipeline.pop_current()
    seen.append(lib.Pipeline.current() is a)
    lib.Pipeline.pop_current()
    return [*seen, lib.Pipeline.current()]


@definition
def nested_definitions(lib):
    a, b = (lib.Pipeline(batch_size=2, num_threads=1, device_id=None) for _ in range(2))
    with a:
        x = feed(lib)
        with b:
            b.set_outputs(feed(lib) + 1)
        a.set_outputs(x)
    return a.run(), b.run()


@definition
def an_error_leaves_no_current_pipeline(lib):
    def fails():
        raise KeyError("mine")

    with contextlib.suppress(KeyError):
        lib.pipe(fails)
    return lib.Pipeline.current()


@definition
def define_graph(lib):
    class Mine(lib.Pipeline):
        def __init__(self, offset):
            super().__init__(2, 1, device_id=None)
            self.source = lib.ops.ExternalSource(source=lambda: BATCH)
            self.offset = offset

        def define_graph(self):
            x = self.source()
            return x, x + self.offset

    return Mine(4).run()


@definition
def define_graph_returns_a_list(lib):
    class Mine(lib.Pipeline):
        def define_graph(self):
            return [feed(lib), feed(lib) + 1]

    return Mine(2, 1, device_id=None).run()


@definition
def define_graph_missing(lib):
    return lib.Pipeline(2, 1, device_id=None).build()


@definition
def define_graph_and_set_outputs(lib):
    class Mine(lib.Pipeline):
        def define_graph(self):
            self.set_outputs(feed(lib))

    return Mine(2, 1, device_id=None).run()


@definition
def iter_setup(lib):
    class Mine(lib.Pipeline):
        count = 0

        def define_graph(self):
            self.x = lib.fn.external_source(name="x")
            return self.x

        def iter_setup(self):
            if self.count == 3:
                raise StopIteration
            self.feed_input(self.x, np.full((2, 1), self.count, np.uint8))
            self.count += 1

    pipe = Mine(2, 1, device_id=None)
    return until_stop(pipe), until_stop(pipe)


@definition
def set_outputs(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = feed(lib)
        pipe.set_outputs(x, x + 1, 3)
    return pipe.run(), pipe.num_outputs


@definition
def set_outputs_outside_of_the_scope(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = feed(lib)
    pipe.set_outputs(x)
    return pipe.run()


@definition
def set_outputs_twice(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = feed(lib)
        pipe.set_outputs(x)
        pipe.set_outputs(x + 1, x)
    return pipe.run()


@definition
def set_outputs_of_nothing(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs()
    return pipe.run()


@definition
def set_outputs_of_a_list(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs([feed(lib)])
    return pipe.run()


@definition
def scope_entered_twice(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = feed(lib)
    with pipe:
        pipe.set_outputs(x + 1)
    return pipe.run()


@definition
def nodes_outside_of_a_pipeline(lib):
    x = lib.fn.external_source(source=lambda: BATCH)
    y = x + 1
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    pipe.set_outputs(y, lib.fn.copy(y))
    return pipe.run()


@definition
def detached_nodes_in_a_definition(lib):
    x = lib.fn.constant(idata=[1, 2])
    return lib.pipe(lambda: (feed(lib), x + 1)).run()


@definition
def one_detached_graph_in_two_pipelines(lib):
    x = lib.fn.constant(idata=[1, 2]) + 1
    return [lib.pipe(lambda: x).run() for _ in range(2)]


@definition
def unused_operators(lib):
    calls = []

    def graph():
        lib.fn.external_source(source=lambda: calls.append(1) or BATCH)
        lib.fn.copy(feed(lib))
        return feed(lib)

    return lib.pipe(graph).run(), calls


@definition
def preserved(lib):
    calls = []

    def graph():
        x = lib.fn.external_source(source=lambda: calls.append(1) or BATCH)
        lib.fn.copy(x, preserve=True)
        return feed(lib)

    return lib.pipe(graph, prefetch_queue_depth=1).run(), bool(calls)


@definition
def duplicate_names(lib):
    def graph():
        return feed(lib, name="mine"), lib.fn.copy(feed(lib), name="mine")

    return lib.pipe(graph).run()


@definition
def odd_names(lib):
    names = ["a b", "a/b", "ünï", '"', "[0]", "__x", "1", "a\nb"]
    return lib.pipe(lambda: tuple(feed(lib, name=n) for n in names)).run()


@definition
def an_empty_name(lib):
    return lib.pipe(lambda: lib.fn.copy(feed(lib), name="")).run()


@definition
def build_is_idempotent(lib):
    pipe = lib.pipe(lambda: feed(lib))
    return pipe.build(), pipe.build(), pipe.run()


@definition
def operators_after_the_build(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(feed(lib))
    pipe.build()
    with pipe:
        lib.fn.copy(feed(lib))
    return pipe.run()


@definition
def an_error_in_the_definition(lib):
    def graph():
        raise ValueError("mine")

    return attempt(lib.pipe, graph)


@pytest.mark.parametrize("name", definition)
def test_definition(name):
    assert_same(definition[name])


def foreign_nodes(lib):
    with lib.Pipeline(batch_size=2, num_threads=1, device_id=None):
        x = feed(lib)
    return len(lib.pipe(lambda: x + 1).run())


def sink_of_a_source(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.add_sink(lib.fn.copy(feed(lib)))
        pipe.set_outputs(feed(lib))
    return len(pipe.run())


# Scenario, what DALI does, what Headrace does.
DIFFERENT = {
    "bytes_per_sample": (lambda lib: built(lib, bytes_per_sample=-1), TypeError, ValueError),
    "threads_left_open": (lambda lib: len(built(lib, num_threads=None)), TypeError, 1),
    "device_of_the_cpu": (
        lambda lib: len(built(lib, device_id=lib.types.CPU_ONLY_DEVICE_ID)),
        RuntimeError,
        1,
    ),
    "tuple_of_types": (
        lambda lib: len(built(lib, output_dtype=(lib.types.INT32,))),
        TypeError,
        1,
    ),
    "dtype_text": (lambda lib: len(built(lib, output_dtype="int32")), TypeError, 1),
    "dtype_of_numpy": (lambda lib: len(built(lib, output_dtype=np.int32)), TypeError, 1),
    "unknown_argument_at_the_call": (
        lambda lib: lib.pipeline_def(lambda: feed(lib))(nonsense=1),
        AssertionError,
        TypeError,
    ),
    "debug_at_the_call": (
        lambda lib: len(
            lib.pipeline_def(lambda: feed(lib))(
                batch_size=2, num_threads=1, device_id=None, debug=True
            ).run()
        ),
        1,
        1,
    ),
    "no_function": (lambda lib: lib.pipeline_def(3) is None, False, TypeError),
    "do_not_convert_a_builtin": (
        lambda lib: lib.pipeline.do_not_convert(len) is len,
        AttributeError,
        True,
    ),
    "numpy_truth_as_an_output": (
        lambda lib: lib.pipe(lambda: np.True_).run()[0].at(0).tolist(),
        TypeError,
        True,
    ),
    "nodes_of_another_pipeline": (foreign_nodes, 1, RuntimeError),
    "sink_of_a_source": (sink_of_a_source, KeyError, 1),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])
