"""`_random_state`, which gives random operators the state to draw with, as in DALI."""

from __future__ import annotations

import json
import operator
from pathlib import Path

import numpy as np
import nvidia.dali.experimental.dynamic as dali_dynamic
import pytest

import headrace.experimental.dynamic as ndd
from headrace.errors import ArgumentTypeError, ArgumentValueError, ConversionError
from headrace.operators.support import registry
from headrace.operators.support.composite import Composite
from tests.parity.outcomes import Table, assert_same
from tests.parity.support import LIBRARIES
from tests.parity.test_pipeline_random_values import (
    BATCH,
    BOXES,
    FILES,
    IMAGES,
    assert_alike,
    batches,
    built,
)

WORDS = np.arange(1, 8, dtype=np.uint32) * 0x9E3779B1
NUMBERS = [np.float32([1.5, 20, 300]) * (k + 1) for k in range(BATCH)]
MASKS = [np.int32(np.arange(30 + 5 * k).reshape(5, -1) % 4 == 0) for k in range(BATCH)]
LABELS = [np.zeros(len(boxes), np.int32) for boxes in BOXES]
WINDOW = {"crop_shape": [9, 5, 3], "roi_start": [2, 2, 0], "roi_end": [60, 7, 3]}
SPANS = [np.float32([1, 20]) * (k + 1) for k in range(BATCH)]
EXTENTS = [np.int32([k + 1]) for k in range(BATCH)]


def calls(lib, state, t=None):
    """Calls of all random operators, by name, with the state that ``state()`` makes."""
    fn, types = lib.fn, lib.types

    def given(data, layout=None):
        return lambda: fn.external_source(lambda: data, layout=layout)

    images = given(IMAGES, "HWC")

    def of(name, *inputs, **args):
        function = operator.attrgetter(name)(fn)
        return name, lambda: function(
            *[i() if callable(i) else i for i in inputs], _random_state=state(), **args
        )

    floating = {"dtype": types.FLOAT if t is None else t}
    return [
        of("random.uniform", **floating),
        of("random.uniform", range=given(SPANS)(), shape=given(EXTENTS)(), **floating),
        of("random.uniform", given(NUMBERS), values=[1.0, 5, 7], **floating, seed=9),
        of("random.normal", mean=30, shape=(5,), **floating),
        of("random.normal", stddev=9.0, dtype=types.INT16),
        of("random.coin_flip", shape=(20,)),
        of("random.choice", 10, shape=(4,)),
        of("random.choice", [1.0, 2, 3], p=[0.2, 0.2, 0.6]),
        of("random.beta", alpha=2.0, beta=3.0),
        of("batch_permutation"),
        of("batch_permutation", allow_repetitions=True),
        of("noise.gaussian", images, stddev=20.0),
        of("noise.salt_and_pepper", images, prob=0.1),
        of("noise.shot", given(NUMBERS), factor=3.0),
        of("jitter", images, nDegree=3),
        of("random_resized_crop", images, size=(9, 9), antialias=False),
        of("random_crop_generator", given([np.int64(i.shape[:2]) for i in IMAGES])),
        of("decoders.image_random_crop", given(FILES)),
        of("roi_random_crop", images, **WINDOW),
        of("random_bbox_crop", given(BOXES), bbox_layout="xyXY", thresholds=[0.0, 0.1, 0.3]),
        of("ssd_random_crop", images, given(BOXES), given(LABELS)),
        of("segmentation.random_mask_pixel", given(MASKS)),
        of("segmentation.random_object_bbox", given(MASKS), foreground_prob=0.7),
    ]


NOT_DALIS = {"noise.shot"}
"""Those with numbers of their own."""
ON_GPUS_ONLY = {"jitter"}


def graph_of(state, names=None):
    """A graph with the calls of these names, all unless given, and one with a seed after them."""

    def graph(lib):
        nodes = []
        for name, call in calls(lib, lambda: state(lib)):
            if name in names if names else name not in ON_GPUS_ONLY | NOT_DALIS:
                made = call()
                nodes += made if isinstance(made, list | tuple) else [made]
        return [*nodes, lib.fn.random.uniform()]

    return graph


def compare(graph):
    theirs = batches(built(LIBRARIES["dali"], graph))
    ours = batches(built(LIBRARIES["headrace"], graph))
    assert_alike(ours, theirs)
    return ours


def of_iterations(*states):
    """A source whose batches are these, in turn."""
    return lambda lib: lib.fn.external_source(lambda i: states[i % len(states)])


def test_every_operator_that_has_it_is_tested():
    tested = {name for name, _ in calls(LIBRARIES["headrace"], lambda: WORDS)}
    schemas = [s for s in registry.all_schemas() if "_random_state" in s.args]
    facts = Path(__file__).parents[1] / "data" / "dali_operator_arguments.json"
    known = json.loads(facts.read_text())
    assert tested == {s.name for s in schemas if s.name in known and not _has_another_name(s)}
    assert not any(issubclass(s.cls, Composite) or s.reader for s in schemas)


def _has_another_name(schema):
    return schema.deprecated is not None and schema.cls.schema.name != schema.name


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_one_state():
    graph = graph_of(lambda lib: WORDS)
    ours = compare(graph)
    outputs = len(ours) // 3
    assert_alike(ours[: outputs - 1], ours[outputs : 2 * outputs - 1])
    lib = LIBRARIES["headrace"]
    assert_alike(batches(built(lib, graph, workers="processes")), ours)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_states_of_iterations():
    """The first sample counts, whatever the others are."""
    states = [[WORDS * np.uint32(k), WORDS[:1], *[WORDS] * (BATCH - 2)] for k in (1, 3)]
    graph = graph_of(of_iterations(*states))
    ours = compare(graph)
    lib = LIBRARIES["headrace"]
    assert_alike(batches(built(lib, graph, workers="processes")), ours)


def test_numbers_of_our_own():
    lib = LIBRARIES["headrace"]
    graph = graph_of(of_iterations([WORDS] * BATCH, [WORDS + np.uint32(1)] * BATCH), NOT_DALIS)
    first, _, second, _, third, _ = batches(built(lib, graph))
    assert_alike([first], [third])
    assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "state",
    [
        *(np.arange(1, 29).astype(t) for t in ["uint8", "int8", "uint16", "float16", "int32"]),
        *(np.arange(1, 29).astype(t) for t in ["int64", "uint64", "float32", "float64"]),
        np.ones(28, bool),
        np.stack([WORDS, WORDS * 3]),
        np.append(WORDS, 9).astype(np.uint32),
        np.arange(14, dtype=np.uint64).reshape(7, 2),
    ],
    ids=lambda state: f"{state.dtype}-{state.ndim}",
)
def test_types_of_states(state):
    compare(graph_of(of_iterations([state] * BATCH), {"random.uniform", "random.choice"}))
    compare(graph_of(lambda lib: state, {"random.uniform"}))
    compare(graph_of(lambda lib: lib.types.Constant(state), {"random.uniform"}))


def uniform(lib, **args):
    return lib.fn.random.uniform(**args)


rows = Table()
for _name, _state in {
    "short": WORDS[:6],
    "empty": WORDS[:0],
    "one": np.uint32(3),
    "few_long": np.arange(3, dtype=np.uint64),
}.items():
    rows(**{f"{_name}_state": lambda lib, s=_state: lib.source([s, WORDS], uniform_of(lib)).run()})
rows(
    a_list=lambda lib: lib.pipe(lambda: uniform(lib, _random_state=WORDS.tolist())).run(),
    of_none=lambda lib: lib.pipe(lambda: uniform(lib, _random_state=None)).run(),
    a_number=lambda lib: lib.pipe(
        lambda: tuple(
            uniform(lib, _random_state=given)
            for given in (3, np.int64(3), lib.types.Constant(3), np.uint32(3))
        )
    ).run(),
    of_an_operator_without=lambda lib: lib.pipe(
        lambda: lib.fn.cast(3, dtype=lib.types.INT8, _random_state=WORDS)
    ).run(),
    of_a_reader=lambda lib: lib.pipe(
        lambda: lib.fn.readers.file(files=[__file__], _random_state=WORDS)[1]
    ).run(),
    in_the_constructor=lambda lib: lib.pipe(
        lambda: lib.ops.random.Uniform(_random_state=WORDS)()
    ).run(),
    in_the_call=lambda lib: lib.pipe(lambda: lib.ops.random.Uniform()(_random_state=WORDS)).run(),
    drawn=lambda lib: lib.pipe(
        lambda: uniform(
            lib,
            _random_state=uniform(lib, range=[0, 9e8], shape=[7], dtype=lib.types.UINT32),
        )
    ).run(),
    is_declared=lambda lib: [
        (s.HasRandomStateArg(), s.HasArgument("_random_state"), s.GetArgumentNames().count("_"))
        for s in map(lib.backend.GetSchema, ("random__Uniform", "Cast", "readers__File"))
    ],
    is_of=lambda lib: [
        lib.backend.GetSchema("Uniform").GetArgumentType("_random_state").name,
        lib.backend.GetSchema("Uniform").IsTensorArgument("_random_state"),
    ],
)


def uniform_of(lib):
    return lambda node: uniform(lib, _random_state=node)


@pytest.mark.parametrize("name", rows)
def test_as_in_dali(name):
    assert_same(rows[name])


def test_errors_say_what_is_wanted():
    lib = LIBRARIES["headrace"]
    with pytest.raises(
        ArgumentValueError, match=r"too small: expected 7 .* 28 bytes, got 24 bytes"
    ):
        batches(built(lib, graph_of(of_iterations([WORDS[:6]] * BATCH), {"random.normal"})))
    for state in (3.5, "words"):
        with lib.Pipeline(2, 1, None), pytest.raises(ConversionError, match="7 words of 32 bits"):
            lib.fn.random.normal(_random_state=state)
    with pytest.raises(ArgumentTypeError, match="unexpected keyword argument '_random_state'"):
        ndd.random.uniform(_random_state=WORDS)


def test_like_dynamic_mode():
    """A call of dynamic mode takes seven words of its generator, and draws with these."""

    def graph(lib):
        rng = ndd.random.RNG(seed=3)
        words = np.array([rng() for _ in range(7)], np.uint32)
        return graph_of(lambda lib: words, {"random_crop_generator", "random.uniform"})(lib)

    begins, sizes, *_ = batches(built(LIBRARIES["headrace"], graph), 1)[3:]
    extents = [np.int64(i.shape[:2]) for i in IMAGES]
    for module in (ndd, dali_dynamic):
        rng = module.random.RNG(seed=3)
        found = module.random_crop_generator(module.batch(extents), rng=rng)
        for expected, output in zip((begins, sizes), found, strict=True):
            assert_alike([[np.asarray(t) for t in output.tensors]], [expected])
