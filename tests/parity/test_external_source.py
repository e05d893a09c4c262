"""`fn.external_source` beside DALI's: forms of sources, ends of data, kinds of data, checks."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same, attempt

torch = pytest.importorskip("torch")


def run(pipe, most=7):
    """Samples of the first output, batch by batch, up to the end of the data."""
    found = []
    with contextlib.suppress(StopIteration):
        for _ in range(most):
            batch = pipe.run()[0]
            found.append([np.asarray(batch.at(i)).tolist() for i in range(len(batch))])
    return found


def epochs(pipe, count=3, most=7):
    """What `run` finds in each epoch."""
    found = []
    for _ in range(count):
        found.append(run(pipe, most))
        pipe.reset()
    return found


def fed_by(source, batch_size=2, **keywords):
    """A scenario: three epochs of a pipeline with this source; ``source()`` makes it."""

    def scenario(lib):
        pipe = lib.pipe(
            lambda: lib.fn.external_source(source=source(), **keywords), batch_size=batch_size
        )
        return epochs(pipe)

    return scenario


def array(k, batch=2):
    return np.full((batch, 1), k, np.int32)


def batches(count):
    for k in range(count):
        yield array(k)


def samples(count):
    for k in range(count):
        yield np.array([k], np.int32)


class Data:
    """A source in every form."""

    def __init__(self, count=3, make=array):
        self.count, self.make = count, make

    def at(self, index):
        if index >= self.count:
            raise StopIteration
        return self.make(index)

    def generate(self):
        for k in range(self.count):
            yield self.make(k)

    @classmethod
    def of_class(cls, index):
        return cls().at(index)

    @staticmethod
    def plain(index):
        return Data().at(index)


class Callable(Data):
    def __call__(self, index):
        return self.at(index)


class CallableWithout(Data):
    def __call__(self):
        return self.make(5)


class Iterable(Data):
    def __iter__(self):
        return self.generate()


class Iterator(Data):
    position = 0

    def __iter__(self):
        self.position = 0
        return self

    def __next__(self):
        self.position += 1
        return self.at(self.position - 1)


class OnlyNext(Data):
    def __next__(self):
        return array(0)


class OnlyGetItem(Data):
    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError
        return array(index)


class GetItemAndCall(OnlyGetItem):
    def __call__(self, index):
        return array(100 + index)


class IterableAndCallable(Iterable):
    def __call__(self, index):
        return array(100 + index)


class GeneratorCall(Data):
    def __call__(self):
        yield from self.generate()


def sample_of(info):
    if info.idx_in_epoch >= 5:
        raise StopIteration
    return np.array([info.idx_in_epoch], np.int32)


def five_samples():
    return [np.array([k], np.int32) for k in range(5)]


def three_batches():
    return [array(k) for k in range(3)]


forms = Table()

forms(
    function=fed_by(lambda: Data().at),
    function_without_argument=fed_by(lambda: lambda: array(1)),
    function_with_a_default=fed_by(lambda: lambda a=3: Data().at(a)),
    function_with_two=fed_by(lambda: lambda a, b: array(1)),
    function_with_two_defaults=fed_by(lambda: lambda a=1, b=2: array(1)),
    function_with_one_and_a_default=fed_by(lambda: lambda a, b=2: array(1)),
    function_with_args=fed_by(lambda: lambda *args: array(1)),
    function_with_keywords=fed_by(lambda: lambda **keywords: array(1)),
    function_with_a_keyword_only=fed_by(lambda: lambda *, a=1: array(1)),
    function_with_a_required_keyword=fed_by(lambda: lambda *, a: array(1)),
    function_with_positional_only=fed_by(lambda: eval("lambda a, /: Data().at(a)", globals())),
    bound_method=fed_by(lambda: Data(2).at),
    class_method=fed_by(lambda: Data.of_class),
    static_method=fed_by(lambda: Data.plain),
    object_with_call=fed_by(Callable),
    object_with_call_without_argument=fed_by(CallableWithout),
    builtin_random=fed_by(lambda: np.random.rand),
    wrapped=fed_by(lambda: functools.wraps(Data.plain)(lambda *a: Data.plain(*a))),
    list_of_batches=fed_by(three_batches),
    tuple_of_batches=fed_by(lambda: tuple(three_batches())),
    empty_list=fed_by(list),
    array_of_batches=fed_by(lambda: np.arange(6, dtype=np.int32).reshape(3, 2, 1)),
    tensors_of_batches=fed_by(
        lambda: torch.arange(6, dtype=torch.int32).reshape(3, 2, 1), cuda_stream=0
    ),
    iterator=fed_by(lambda: iter(three_batches())),
    map_object=fed_by(lambda: map(array, range(3))),
    zip_object=fed_by(lambda: zip(five_samples(), five_samples(), strict=True)),
    iterable_object=fed_by(Iterable),
    iterator_object=fed_by(Iterator),
    object_with_next_only=fed_by(OnlyNext),
    object_with_getitem_only=fed_by(OnlyGetItem),
    object_with_getitem_and_call=fed_by(GetItemAndCall),
    object_with_getitem_cycle=fed_by(OnlyGetItem, cycle="raise"),
    iterable_and_callable=fed_by(IterableAndCallable),
    generator_function=fed_by(lambda: lambda: batches(3)),
    real_generator_function=fed_by(lambda: Data(2).generate),
    generator_function_with_argument=fed_by(lambda: batches),
    generator_function_with_default=fed_by(lambda: functools.partial(batches, 2)),
    generator_object=fed_by(lambda: batches(3)),
    generator_call=fed_by(GeneratorCall),
    dictionary=fed_by(lambda: {0: array(0)}),
    text=fed_by(lambda: "text"),
    number=fed_by(lambda: 3),
    nothing=fed_by(lambda: object()),
    # the end of the data
    list_cycle=fed_by(three_batches, cycle=True),
    list_cycle_quiet=fed_by(three_batches, cycle="quiet"),
    list_cycle_raise=fed_by(three_batches, cycle="raise"),
    list_cycle_no=fed_by(three_batches, cycle="no"),
    list_cycle_false=fed_by(three_batches, cycle=False),
    list_cycle_unknown=fed_by(three_batches, cycle="sometimes"),
    list_cycle_number=fed_by(three_batches, cycle=1),
    list_cycle_two=fed_by(three_batches, cycle=2),
    list_cycle_list=fed_by(three_batches, cycle=[]),
    empty_list_cycle_raise=fed_by(list, cycle="raise"),
    empty_list_cycle=fed_by(list, cycle=True),
    function_cycle=fed_by(lambda: Data().at, cycle=True),
    function_cycle_raise=fed_by(lambda: Data().at, cycle="raise"),
    function_cycle_no=fed_by(lambda: Data().at, cycle="no"),
    function_cycle_false=fed_by(lambda: Data().at, cycle=False),
    generator_function_cycle=fed_by(lambda: Data(2).generate, cycle=True),
    generator_function_cycle_raise=fed_by(lambda: Data(2).generate, cycle="raise"),
    generator_call_cycle=fed_by(GeneratorCall, cycle="raise"),
    partial_generator_cycle=fed_by(lambda: functools.partial(batches, 2), cycle="raise"),
    generator_object_cycle=fed_by(lambda: batches(3), cycle=True),
    generator_object_cycle_raise=fed_by(lambda: batches(3), cycle="raise"),
    generator_object_cycle_no=fed_by(lambda: batches(3), cycle="no"),
    iterator_cycle=fed_by(lambda: iter(three_batches()), cycle="raise"),
    iterator_object_cycle=fed_by(Iterator, cycle="raise"),
    iterator_object_cycle_quiet=fed_by(Iterator, cycle=True),
    iterable_object_cycle=fed_by(Iterable, cycle="raise"),
    array_cycle=fed_by(lambda: np.arange(6, dtype=np.int32).reshape(3, 2, 1), cycle=True),
    # samples
    sample_function=fed_by(lambda: sample_of, batch=False),
    sample_function_without_argument=fed_by(lambda: lambda: np.array([3]), batch=False),
    sample_list=fed_by(five_samples, batch=False),
    sample_list_cycle=fed_by(five_samples, batch=False, cycle=True),
    sample_list_cycle_raise=fed_by(five_samples, batch=False, cycle="raise"),
    sample_list_exact=fed_by(lambda: five_samples()[:4], batch=False),
    sample_list_exact_cycle_raise=fed_by(lambda: five_samples()[:4], batch=False, cycle="raise"),
    sample_list_shorter_than_a_batch=fed_by(lambda: five_samples()[:1], batch=False, cycle="raise"),
    sample_list_shorter_cycle=fed_by(
        lambda: five_samples()[:3], batch_size=5, batch=False, cycle=True
    ),
    sample_generator=fed_by(lambda: lambda: samples(5), batch=False),
    sample_generator_function=fed_by(
        lambda: Data(5, lambda k: np.array([k])).generate, batch=False
    ),
    sample_generator_cycle=fed_by(
        lambda: Data(5, lambda k: np.array([k])).generate, batch=False, cycle="raise"
    ),
    sample_iterator_cycle=fed_by(lambda: iter(five_samples()), batch=False, cycle=True),
    sample_generator_object=fed_by(lambda: samples(5), batch=False),
    batch_none=fed_by(lambda: Data().at, batch=None),
    batch_number=fed_by(lambda: Data().at, batch=1),
    batch_info=fed_by(
        lambda: (
            lambda info: (
                array(10 * info.epoch_idx + info.iteration)
                if info.iteration < 2
                else next(iter([]))
            )
        ),
        batch_info=True,
    ),
    batch_info_false=fed_by(lambda: Data().at, batch_info=False),
    batch_info_none=fed_by(lambda: Data().at, batch_info=None),
    batch_info_with_samples=fed_by(lambda: sample_of, batch=False, batch_info=True),
    batch_info_with_an_iterable=fed_by(three_batches, batch_info=True),
)


@forms
def positions(lib):
    seen = []

    def source(info):
        seen.append((info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx))
        if info.iteration == 2:
            raise StopIteration
        return np.array([1])

    pipe = lib.pipe(
        lambda: lib.fn.external_source(source=source, batch=False), prefetch_queue_depth=1
    )
    epochs(pipe, 2)
    return seen


@forms
def types_of_positions(lib):
    seen = []

    def source(index):
        seen.append(type(index).__name__)
        return array(1)

    lib.pipe(lambda: lib.fn.external_source(source=source), prefetch_queue_depth=1).run()
    lib.pipe(
        lambda: lib.fn.external_source(source=source, batch_info=True), prefetch_queue_depth=1
    ).run()
    return seen


@forms
def end_in_the_middle_of_a_batch(lib):
    calls = []

    def source(info):
        calls.append(info.idx_in_epoch)
        return sample_of(info)

    pipe = lib.pipe(
        lambda: lib.fn.external_source(source=source, batch=False), prefetch_queue_depth=1
    )
    return epochs(pipe), calls


@forms
def raising_without_reset(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(source=three_batches(), cycle="raise"))
    return run(pipe), attempt(pipe.run), attempt(pipe.run), attempt(pipe.run)


@forms
def generator_is_started_at_once(lib):
    calls = []

    def source():
        calls.append("started")
        yield array(0)

    with lib.Pipeline(2, 1, device_id=None):
        lib.fn.external_source(source=source)
    return calls


@forms
def iterator_is_made_at_once(lib):
    calls = []

    class Source:
        def __iter__(self):
            calls.append("made")
            return iter(three_batches())

    with lib.Pipeline(2, 1, device_id=None):
        lib.fn.external_source(source=Source())
    return calls


@forms
def how_often_an_iterable_is_started(lib):
    calls = []

    class Source:
        def __iter__(self):
            calls.append("made")
            return iter(three_batches())

    pipe = lib.pipe(lambda: lib.fn.external_source(source=Source(), cycle="raise"))
    epochs(pipe, 3)
    return calls


@forms
def error_in_a_sample(lib):
    def source(info):
        if info.idx_in_epoch == 3:
            raise KeyError("mine")
        return np.array([info.idx_in_epoch])

    pipe = lib.pipe(
        lambda: lib.fn.external_source(source=source, batch=False), prefetch_queue_depth=1
    )
    return pipe.run(), attempt(pipe.run), attempt(pipe.run)


@forms
def error_in_an_iterable(lib):
    def source():
        yield array(0)
        raise KeyError("mine")

    pipe = lib.pipe(lambda: lib.fn.external_source(source=source), prefetch_queue_depth=1)
    return pipe.run(), attempt(pipe.run), attempt(pipe.run)


@forms
def stop_iteration_in_a_generator_function(lib):
    def source():
        yield array(0)
        raise StopIteration

    pipe = lib.pipe(lambda: lib.fn.external_source(source=source), prefetch_queue_depth=1)
    return pipe.run(), attempt(pipe.run)


@pytest.mark.parametrize("name", forms)
def test_forms_of_sources(name):
    assert_same(forms[name])


several = Table()


def outputs(source, count=2, batch_size=2, **keywords):
    """A scenario: the first two batches of all outputs."""

    def scenario(lib):
        arguments = {
            k: [getattr(lib.types, n) if isinstance(n, str) else n for n in v]
            if k == "dtype" and isinstance(v, list)
            else v
            for k, v in keywords.items()
        }
        pipe = lib.pipe(
            lambda: tuple(lib.fn.external_source(source=source, num_outputs=count, **arguments)),
            batch_size=batch_size,
        )
        return pipe.run(), pipe.run()

    return scenario


two = (array(1), np.array([[1.5], [2.5]], np.float32))


def fed(**keywords):
    """A scenario: two outputs of a class without a source, each fed by itself."""

    def scenario(lib):
        pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            nodes = lib.ops.ExternalSource(num_outputs=2, **keywords)()
            pipe.set_outputs(*nodes)
        pipe.build()
        for node, values in zip(nodes, two, strict=True):
            pipe.feed_input(node, values)
        return pipe.run()

    return scenario


def not_fed(**keywords):
    return lambda lib: lib.pipe(lambda: lib.fn.external_source(**keywords)) and None


several(
    class_that_is_fed=fed(),
    class_that_is_fed_with_layouts=fed(layout=["A", "B"]),
    class_that_is_fed_with_one_layout=fed(layout="A"),
    class_that_is_fed_with_ndims=fed(ndim=[1, 2]),
    several_that_are_fed=not_fed(num_outputs=2),
    several_of_a_name=not_fed(num_outputs=2, name="n"),
    no_cycle_without_a_source=not_fed(name="n", cycle=False),
    cycle_without_a_source=not_fed(name="n", cycle=True),
    quiet_cycle_without_a_source=not_fed(name="n", cycle="quiet"),
    tuple_=outputs(lambda: two),
    list_=outputs(lambda: list(two)),
    array_=outputs(lambda: np.stack([array(1), array(2)])),
    more_than_asked_for=outputs(lambda: (*two, array(3))),
    fewer_than_asked_for=outputs(lambda: two[:1]),
    one=outputs(lambda: (array(1),), 1),
    text=outputs(lambda: two, "2"),
    samples=outputs(lambda info: (np.array([info.idx_in_batch]), np.array(2.5)), batch=False),
    samples_as_lists=outputs(lambda info: [np.array([1]), np.array(2.5)], batch=False),
    iterable=outputs([two, two]),
    iterable_of_samples=outputs([two, two, two, two], batch=False),
    lists_of_samples=outputs(lambda: ([np.zeros(1), np.zeros(2)], [np.ones((1, 2))] * 2)),
    batch_sizes_clash=outputs(lambda: (array(1, 1), array(1, 2))),
    smaller_batches=outputs(lambda: (array(1, 1), array(1, 1))),
    layouts=outputs(lambda: two, layout=["A", "B"]),
    layout_for_all=outputs(lambda: two, layout="A"),
    layout_for_the_first=outputs(lambda: two, layout=["A"]),
    layouts_tuple=outputs(lambda: two, layout=("A", "B")),
    layouts_empty=outputs(lambda: two, layout=["", "B"]),
    dtypes=outputs(lambda: two, dtype=["INT32", "FLOAT"]),
    dtypes_of_the_first=outputs(lambda: two, dtype=["INT32"]),
    dtypes_no_type=outputs(lambda: two, dtype=["NO_TYPE", "FLOAT"]),
    dtypes_none=outputs(lambda: two, dtype=[None, "FLOAT"]),
    dtypes_mismatch=outputs(lambda: two, dtype=["INT32", "INT32"]),
    ndims=outputs(lambda: two, ndim=[1, 1]),
    ndim_for_all=outputs(lambda: two, ndim=1),
    ndims_none=outputs(lambda: two, ndim=[None, 1]),
    ndims_of_the_first=outputs(lambda: two, ndim=[1]),
    ndims_mismatch=outputs(lambda: two, ndim=[1, 2]),
    named=outputs(lambda: two, name="n"),
    without_a_source=outputs(None),
    none=outputs(lambda: None),
    returns_a_list=lambda lib: lib.pipe(
        lambda: (
            nodes := lib.fn.external_source(source=lambda: two, num_outputs=2),
            *nodes,
        )[1:]
    ).run(),
    type_of_the_result=lambda lib: lib.pipe(
        lambda: (
            type(lib.fn.external_source(source=lambda: two, num_outputs=1)).__name__ == "list",
            lib.types.Constant(1),
        )
    ).run(),
)


@several
def unused_outputs(lib):
    calls = []

    def source():
        calls.append(1)
        return two

    def define():
        return lib.fn.external_source(source=source, num_outputs=2)[1]

    return lib.pipe(define, prefetch_queue_depth=1).run(), len(calls)


@several
def names_of_several_outputs(lib):
    with lib.Pipeline(2, 1, device_id=None):
        return len(lib.fn.external_source(source=lambda: two, num_outputs=2))


@pytest.mark.parametrize("name", several)
def test_several_outputs(name):
    assert_same(several[name])


arguments = Table()


def given(data=None, **keywords):
    """A scenario: one batch of a source with these arguments; texts name types."""
    data = array(1) if data is None else data

    def scenario(lib):
        converted = {
            k: getattr(lib.types, v) if k == "dtype" and isinstance(v, str) and v.isupper() else v
            for k, v in keywords.items()
        }
        return lib.pipe(lambda: lib.fn.external_source(source=lambda: data, **converted)).run()

    return scenario


IMAGES = np.zeros((2, 3, 4, 3), np.uint8)

arguments(
    layout=given(IMAGES, layout="HWC"),
    layout_empty=given(IMAGES, layout=""),
    layout_none=given(IMAGES, layout=None),
    layout_too_short=given(IMAGES, layout="HW"),
    layout_too_long=given(IMAGES, layout="FHWC"),
    layout_number=given(IMAGES, layout=3),
    layout_list_without_num_outputs=given(IMAGES, layout=["HWC"]),
    layout_odd_letters=given(IMAGES, layout="xyz"),
    layout_repeated_letters=given(IMAGES, layout="HHC"),
    dtype=given(IMAGES, dtype="UINT8"),
    dtype_mismatch=given(IMAGES, dtype="FLOAT"),
    dtype_no_type=given(IMAGES, dtype="NO_TYPE"),
    dtype_unknown=given(IMAGES, dtype="uint9"),
    dtype_list_without_num_outputs=given(IMAGES, dtype=[]),
    ndim=given(IMAGES, ndim=3),
    ndim_mismatch=given(IMAGES, ndim=2),
    ndim_negative=given(IMAGES, ndim=-1),
    ndim_float=given(IMAGES, ndim=3.0),
    ndim_zero=given(np.array([1, 2]), ndim=0),
    ndim_and_layout=given(IMAGES, ndim=3, layout="HWC"),
    ndim_against_layout=given(IMAGES, ndim=2, layout="HWC"),
    name=given(name="n"),
    name_empty=lambda lib: lib.pipe(
        lambda: lib.fn.copy(lib.fn.external_source(source=lambda: array(1)), name="")
    ).run(),
    device=given(device="cpu"),
    device_unknown=given(device="tpu"),
    unknown=given(foo=1),
    unknown_none=given(foo=None),
    positional=lambda lib: lib.pipe(lambda: lib.fn.external_source(lambda: array(1))).run(),
    positional_count=lambda lib: lib.pipe(
        lambda: tuple(lib.fn.external_source(lambda: two, 2))
    ).run(),
    three_positional=lambda lib: lib.pipe(
        lambda: tuple(lib.fn.external_source(lambda: two, 2, True))
    ).run(),
    source_twice=lambda lib: lib.pipe(
        lambda: lib.fn.external_source(lambda: array(1), source=lambda: array(1))
    ).run(),
    cycle_without_source=lambda lib: lib.pipe(lambda: lib.fn.external_source(cycle=True)).build(),
    no_copy=given(no_copy=True),
    no_copy_none=given(no_copy=None),
    no_copy_of_a_list=given([np.zeros(2), np.ones(3)], no_copy=True),
    cuda_stream=given(cuda_stream=1),
    use_copy_kernel=given(use_copy_kernel=True),
    blocking_false=given(blocking=False),
    blocking_none=given(blocking=None),
    parallel_false=given(parallel=False),
    parallel_none=given(parallel=None),
    depth_without_parallel=given(prefetch_queue_depth=2),
    bytes_hint_without_parallel=given(bytes_per_sample_hint=100),
    repeat_last_false=given(repeat_last=False),
)


@pytest.mark.parametrize("name", arguments)
def test_arguments(name):
    assert_same(arguments[name])


def first(make, count=None, **keywords):
    """A scenario: the samples of the first output of the first batch."""

    def scenario(lib):
        def define():
            nodes = lib.fn.external_source(source=lambda: make(lib), **keywords)
            return tuple(nodes) if isinstance(nodes, list) else nodes

        out = lib.pipe(define).run()[0]
        return [out.layout(), *(np.asarray(out.at(k)).tolist() for k in range(len(out)))]

    return scenario


# Scenario, what DALI does, what Headrace does.
DIFFERENT = {
    "too_many_layouts": (
        first(lambda lib: two, num_outputs=2, layout=["A", "B", "C"]),
        ["A", [1], [1]],
        ValueError,
    ),
    "no_outputs": (first(lambda lib: two, num_outputs=0), NotImplementedError, ValueError),
    "dtype_as_text": (first(lambda lib: array(1), dtype="int32"), ValueError, ["", [1], [1]]),
    "dtype_of_numpy": (first(lambda lib: array(1), dtype=np.int32), TypeError, ["", [1], [1]]),
    "ndim_as_text": (first(lambda lib: array(1), ndim="1"), ["", [1], [1]], TypeError),
    "a_dictionary_of_outputs": (
        first(lambda lib: {"a": 1}, num_outputs=2),
        KeyError,
        TypeError,
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])


three = [[[k], [k]] for k in range(3)]
endless = [[[5], [5]]] * 7

# Functions whose signature DALI does not read, or reads as one that it refuses.
WRAPPED = {
    "partial": (lambda: functools.partial(lambda k, i: Data(k).at(i), 3), three),
    "partial by name": (lambda: functools.partial(lambda i, k: Data(k).at(i), k=3), three),
    "partial of all": (lambda: functools.partial(array, 5, batch=2), endless),
    "partial of a method": (lambda: functools.partial(Data().at), three),
    "cached": (lambda: functools.lru_cache(lambda i: Data().at(i)), three),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_functions(name):
    make, expected = WRAPPED[name]
    error = RecursionError if name == "cached" else TypeError
    assert_differs(fed_by(make), error, [expected] * 3)


@pytest.mark.parametrize("source", [np.zeros, Iterable], ids=["NumPy's function", "class"])
def test_sources_that_dali_hangs_on_until_the_stack_is_full(source):
    assert_differs(fed_by(lambda: source), RecursionError, TypeError)
