"""Advice is a function of figures: every kind, and where it turns into another."""

import itertools
from dataclasses import replace

import pytest

from headrace.profiling.advice import KINDS, advice_for
from headrace.profiling.figures import Figures

# A consumer that waits, of threads that are busy on processors that are, too.
LIMIT = Figures(
    batches=100,
    samples=6400,
    seconds=10.0,
    threads=4,
    processors=4,
    consumer_waits=0.6,
    consumer_works=0.4,
    takes_that_waited=1.0,
    working=0.95,
    processors_used=3.9,
    slowest="fn.resize",
    slowest_share=0.7,
)

CASES = {
    "measure-longer": {"batches": 3},
    "busy-machine": {"processor_waits": 0.4, "processors_used": 1.8, "reading_waits": 0.5},
    "nothing-to-do": {"consumer_waits": 0.04, "working": 0.9},
    "slow-source": {"consumer_asks": 0.5, "consumer_waits": 0.2, "source": "external source"},
    "slow-callback": {"callbacks": 0.7, "callback": "fn.python_function"},
    "slow-disk": {"reading": 0.5, "reading_waits": 0.4},
    "worker-processes": {"interpreter_held": 0.8},
    "decode-on-gpu": {"has_gpu": True, "decoding": 0.6, "decoder": "fn.decoders.image"},
    "fewer-threads": {"threads": 16, "processor_waits": 0.6},
    "more-threads": {"processors_used": 0.2},
    "more-prefetch": {"working": 0.5, "takes_that_waited": 0.4, "depth": 3},
    "slow-operator": {},
    "less-padding": {"padding": 0.4},
}


def kinds(figures):
    return [advice.kind for advice in advice_for(figures)]


def test_every_kind_has_a_case():
    assert set(CASES) == set(KINDS)


@pytest.mark.parametrize("kind", CASES)
def test_each_cause_has_its_advice(kind):
    figures = replace(LIMIT, **CASES[kind])
    if kind == "less-padding":  # beside the one about time
        assert kinds(figures) == ["slow-operator", kind]
        assert kinds(replace(figures, padding=0.1)) == ["slow-operator"]
    else:
        assert kinds(figures) == [kind]
    advice = advice_for(figures)[-1]
    assert advice.title
    assert advice.why
    assert advice.how


def test_advice_names_numbers_and_operators():
    said = {k: " ".join(advice_for(replace(LIMIT, **c))[0]) for k, c in CASES.items()}
    assert "num_threads=4" in said["fewer-threads"]
    assert "num_threads=16" in said["more-threads"]
    assert "prefetch_queue_depth=6" in said["more-prefetch"]
    assert "fn.python_function" in said["slow-callback"]
    assert "fn.decoders.image" in said["decode-on-gpu"]
    assert "fn.resize" in said["slow-operator"]
    assert 'workers="processes"' in said["worker-processes"]
    assert "40 %" in said["slow-disk"]
    assert "used 1.8 of 4" in said["busy-machine"]


def test_no_more_threads_where_others_have_the_processors():
    figures = replace(LIMIT, **CASES["more-threads"], processor_waits=0.2)
    assert [a.kind for a in advice_for(figures)] == ["busy-machine"]


BY_PROCESSES = sorted(set(KINDS) - {"worker-processes"})


@pytest.mark.parametrize("kind", BY_PROCESSES)
def test_each_cause_has_its_advice_with_processes(kind):
    figures = replace(LIMIT, **CASES[kind], workers="processes")
    advice = advice_for(figures)[-1]
    assert advice.kind == kind
    text = " ".join(advice[1:]).replace("num_threads", "")
    assert 'workers="processes"' not in text, "they are there"
    assert "threads" not in text


def test_processes_that_have_not_started():
    chosen = replace(LIMIT, **CASES["worker-processes"], has_chosen_processes=True)
    (advice,) = advice_for(chosen)
    assert "by itself in longer runs" in advice.how


def test_idle_threads_of_a_slow_consumer_may_go():
    figures = replace(LIMIT, consumer_waits=0.0, consumer_works=1.0, working=0.2, threads=8)
    assert kinds(figures) == ["nothing-to-do", "fewer-threads"]
    assert "num_threads=2" in advice_for(figures)[1].title
    assert kinds(replace(figures, threads=1)) == ["nothing-to-do"]
    assert kinds(replace(figures, working=0.0)) == ["nothing-to-do"]


# Just short of what gives the advice, it is another one.
@pytest.mark.parametrize(
    ("kind", "nearly"),
    [
        ("slow-source", {"consumer_asks": 0.29}),
        ("slow-source", {"consumer_waits": 0.51}),
        ("slow-callback", {"callbacks": 0.49}),
        ("slow-disk", {"reading_waits": 0.29}),
        ("busy-machine", {"processor_waits": 0.29}),
        ("busy-machine", {"processor_waits": None}),
        ("busy-machine", {"processors_used": 2.1}),
        ("worker-processes", {"interpreter_held": 0.59}),
        ("worker-processes", {"interpreter_held": None}),
        ("worker-processes", {"threads": 1}),
        ("worker-processes", {"working": 0.19}),
        ("decode-on-gpu", {"working": 0.19}),
        ("worker-processes", {"workers": "processes"}),
        ("worker-processes", {"processors": 1}),
        ("decode-on-gpu", {"has_gpu": False}),
        ("decode-on-gpu", {"decoding": 0.39}),
        ("fewer-threads", {"threads": 4}),
        ("fewer-threads", {"processor_waits": 0.29}),
        ("fewer-threads", {"processor_waits": None, "working": 0.49, "processors_used": 3.1}),
        ("more-threads", {"processors_used": 3.1}),
        ("more-threads", {"working": 0.79}),
        ("more-prefetch", {"takes_that_waited": 0.95}),
        ("more-prefetch", {"working": 0.81}),
        ("nothing-to-do", {"consumer_waits": 0.06}),
        ("measure-longer", {"batches": 4}),
    ],
)
def test_where_advice_ends(kind, nearly):
    figures = replace(LIMIT, **{**CASES[kind], **nearly})
    assert kind not in kinds(figures)


def test_threads_that_the_engine_leaves_idle_may_go():
    figures = replace(LIMIT, threads=16, working=0.25, processors_used=3.9)
    assert kinds(figures) == ["fewer-threads"]


def test_there_is_advice_for_all_figures():
    shares = (0.0, 0.5, 1.0)
    names = (
        "consumer_waits",
        "consumer_asks",
        "working",
        "reading_waits",
        "callbacks",
        "processor_waits",
        "takes_that_waited",
    )
    seen = set()
    for values in itertools.product(shares, repeat=len(names)):
        for held, gpu, used, threads in (
            (None, False, 0.5, 8),
            (None, False, 3.9, 8),
            (None, True, 3.9, 4),
            (1.0, False, 3.9, 4),
        ):
            figures = replace(
                LIMIT,
                **dict(zip(names, values, strict=True)),
                interpreter_held=held,
                has_gpu=gpu,
                decoding=0.9,
                processors_used=used,
                threads=threads,
            )
            found = kinds(figures)
            assert 1 <= len(found) <= 2
            assert len(set(found)) == len(found)
            seen.update(found)
    assert seen >= set(KINDS) - {"measure-longer", "less-padding"}


def test_an_empty_profile_asks_for_more():
    assert kinds(Figures()) == ["measure-longer"]
