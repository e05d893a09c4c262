"""The page of a profile: HTML that needs nothing else, and no scripts."""

from __future__ import annotations

from html import escape

from headrace._version import __version__
from headrace.profiling.advice import Advice, advice_for
from headrace.profiling.drawings import COLOURS, queue_drawing, threads_drawing
from headrace.profiling.figures import Figures, LaneTime, OperatorTime, figures_of
from headrace.profiling.recorder import ProfileRecorder
from headrace.profiling.style import STYLE

_WAITS = (("works", "at work"), ("waits", "waits"), ("asks", "asks sources"), ("idle", "idle"))


def page(recorders: list[ProfileRecorder]) -> str:
    """The page of all pipelines."""
    sections = "".join(_section(recorder) for recorder in recorders)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Profile of a pipeline</title><style>{STYLE}</style></head><body><main>"
        f"{sections or '<h1>Profile</h1><p>No pipeline was built.</p>'}"
        f"{_footer()}</main></body></html>\n"
    )


def _section(recorder: ProfileRecorder) -> str:
    figures = figures_of(recorder)
    colours = {
        o.label.name: k % (COLOURS - 1)
        for k, o in enumerate(sorted(figures.operators, key=lambda o: -o.seconds))
    }
    parts = [_head(recorder.setup.name, figures), _advice(figures)]
    if figures.batches:
        parts += [
            _who_waits(figures),
            _operators(figures, colours),
            _threads(recorder, colours),
            _queue(figures),
            _interpreter(figures),
            _memory(figures),
        ]
    return f'<section class="pipeline">{"".join(parts)}</section>'


def _head(name: str, f: Figures) -> str:
    where = "with work for a GPU" if f.device == "gpu" else "on the CPU"
    facts = [
        ("samples a second", f"{f.samples_per_second:,.0f}"),
        ("batches", f"{f.batches:,}"),
        ("seconds", f"{f.seconds:.2f}"),
        ("samples a batch", f"{f.batch_size}"),
        (f"worker {f.workers}", f"{f.threads}"),
        ("batches ahead", f"{f.depth}"),
        ("processors in use", f"{f.processors_used:.1f} of {f.processors}"),
    ]
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    cut = " The begin of a long run was left out." if f.is_cut else ""
    return (
        f"<h1>Profile of {escape(name)}</h1>"
        f'<p class="soft">{where}, after the first batch, which starts everything.{cut}</p>'
        f'<dl class="facts">{items}</dl>'
    )


def _advice(figures: Figures) -> str:
    said = escape(figures.perfect_loader)
    return f"<h2>What to do</h2><p>{said}</p>" + "".join(
        _card(advice) for advice in advice_for(figures)
    )


def _card(advice: Advice) -> str:
    good = " good" if advice.kind == "nothing-to-do" else ""
    return (
        f'<div class="advice{good}"><h3>{escape(advice.title)}</h3><p>{escape(advice.why)}</p>'
        f'<p class="how">{escape(advice.how)}</p></div>'
    )


def _bar(parts: list[tuple[float, str]], text: str) -> str:
    """A bar of parts of its length, each with a colour; `text` says the same."""
    inner = "".join(
        f'<i style="width:{100 * min(max(share, 0), 1):.2f}%;background:var(--{colour})"></i>'
        for share, colour in parts
    )
    return f'<div class="bar" role="img" aria-label="{escape(text)}">{inner}</div>'


def _key(items: list[tuple[str, str]]) -> str:
    inner = "".join(
        f'<li><i style="background:var(--{colour})"></i>{escape(text)}</li>'
        for colour, text in items
    )
    return f'<ul class="key">{inner}</ul>'


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _who_waits(f: Figures) -> str:
    rows = [
        _lane_row(
            "consumer",
            f.consumer_works,
            f.consumer_waits,
            f.consumer_asks,
            0.0,
            None,
            "your program: what is done with batches",
        )
    ]
    rows += [_of_lane(lane) for lane in f.lanes]
    return (
        "<h2>Who waits for whom</h2>"
        f"{_key([*_WAITS])}"
        '<div class="table"><table><caption>A consumer that waits much is held up by the pipeline; '
        "threads that are idle much are held up by the consumer.</caption>"
        '<thead><tr><th scope="col">thread</th><th scope="col">time</th>'
        '<th scope="col" class="n">at work</th><th scope="col" class="n">waits</th>'
        '<th scope="col" class="n">idle</th><th scope="col" class="n">processor</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{_processor_waits(f)}"
    )


def _processor_waits(f: Figures) -> str:
    if f.processor_waits is None:
        return ""
    return (
        f"<p>Worker {f.workers} waited for a processor for {_percent(f.processor_waits)} of the "
        "time that they were at work.</p>"
    )


def _of_lane(lane: LaneTime) -> str:
    note = "waits for worker processes" if lane.waiting_for_process else ""
    return _lane_row(
        lane.name, lane.working, lane.waiting_for_process, 0.0, lane.idle, lane.processor, note
    )


def _lane_row(
    name: str,
    works: float,
    waits: float,
    asks: float,
    idle: float,
    processor: float | None,
    note: str,
) -> str:
    text = f"at work {_percent(works)}, waits {_percent(waits)}, idle {_percent(idle)}"
    if asks:
        text += f", asks sources {_percent(asks)}"
        note += f"; asks external sources {_percent(asks)}"
    bar = _bar([(works, "works"), (asks, "asks"), (waits, "waits"), (idle, "idle")], text)
    small = f"<small>{escape(note)}</small>" if note else ""
    used = "" if processor is None else _percent(processor)
    return (
        f'<tr><th scope="row">{escape(name)}{small}</th><td class="b">{bar}</td>'
        f'<td class="n">{_percent(works)}</td><td class="n">{_percent(waits)}</td>'
        f'<td class="n">{_percent(idle)}</td><td class="n">{used}</td></tr>'
    )


def _operators(f: Figures, colours: dict[str, int]) -> str:
    whole = sum(o.seconds for o in f.operators)
    if not whole:
        return ""
    rows = "".join(_operator_row(o, whole, colours) for o in f.operators)
    return (
        '<h2>Time by operator</h2><div class="table"><table><caption>Time of threads or worker '
        "processes; waiting is the part of it in which no processor was used: for files, for the "
        "interpreter, for a processor, or in a sleeping function.</caption><thead><tr>"
        '<th scope="col">operator</th><th scope="col">share</th>'
        '<th scope="col" class="n">of all</th><th scope="col" class="n">µs a sample</th>'
        '<th scope="col" class="n">waiting</th><th scope="col" class="n">samples</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _operator_row(o: OperatorTime, whole: float, colours: dict[str, int]) -> str:
    label, share = o.label, o.seconds / whole
    notes = [label.device if label.device != "cpu" else "", label.where, label.note]
    if label.kind == "callback":
        notes.insert(0, "a function of yours")
    small = "; ".join(note for note in notes if note)
    bar = _bar([(share, f"c{colours[label.name]}")], f"{_percent(share)} of the time")
    waiting = max(1 - o.processor_seconds / o.seconds, 0.0) if o.seconds else 0.0
    return (
        f'<tr><th scope="row"><code>{escape(label.name)}</code><small>{escape(small)}</small></th>'
        f'<td class="b">{bar}</td><td class="n">{_percent(share)}</td>'
        f'<td class="n">{o.microseconds_per_sample:,.1f}</td><td class="n">{_percent(waiting)}</td>'
        f'<td class="n">{o.samples:,}</td></tr>'
    )


def _threads(recorder: ProfileRecorder, colours: dict[str, int]) -> str:
    drawing = threads_drawing(recorder, colours)
    if not drawing:
        return ""
    key = [(f"c{number}", name) for name, number in colours.items()]
    key += [("waits", "waits"), ("c9", "the engine")]
    return (
        f'<h2>A few batches</h2>{_key(key)}<figure class="figure">{drawing}<figcaption>A dashed '
        "line is where the consumer got a batch. The timeline beside this page has all of it: open "
        "it in Perfetto (ui.perfetto.dev) or in about:tracing of Chrome.</figcaption></figure>"
    )


def _queue(f: Figures) -> str:
    if not f.queue:
        return ""
    return (
        f'<h2>The queue</h2><figure class="figure">{queue_drawing(f)}<figcaption>Complete batches '
        f"that waited for the consumer, over time. When it asked, {f.ready:.1f} were there on "
        f"average; for {_percent(f.takes_that_waited)} of its batches there was none."
        "</figcaption></figure>"
    )


def _interpreter(f: Figures) -> str:
    if f.interpreter_held is None:
        text = "Not looked at here."
        if f.workers == "processes":
            text = "Each worker process has an interpreter of its own."
        return f"<h2>Python's interpreter</h2><p>{text}</p>"
    share = f.interpreter_held
    return (
        f"<h2>Python's interpreter</h2><p>In use {_percent(share)} of the times that it "
        "was asked for, by your program or the pipeline. Threads that want it meanwhile wait.</p>"
        + _bar([(share, "waits")], f"in use {_percent(share)}")
    )


def _memory(f: Figures) -> str:
    def megabytes(count: int) -> str:
        return f"{count / 1e6:,.0f} MB"

    peaks = {"pools of host memory, in use and idle": f.pool_peak_bytes}
    if f.device == "gpu":
        peaks["pool of the GPU's memory, in use and idle"] = f.device_peak_bytes
    peaks["this process"] = f.resident_peak_bytes
    rows = "".join(
        f'<tr><th scope="row">{escape(what)}</th><td class="n">{megabytes(peak)}</td></tr>'
        for what, peak in peaks.items()
    )
    return (
        '<h2>Memory</h2><div class="table"><table><caption>The most there was at once.</caption>'
        '<thead><tr><th scope="col">what</th><th scope="col" class="n">peak</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _footer() -> str:
    return f'<p class="soft" style="margin-top:3rem">Headrace {escape(__version__)}</p>'
