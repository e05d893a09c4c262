"""The commands of ``headrace``."""

from __future__ import annotations

import functools
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headrace._version import __version__
from headrace.cli import caches, running
from headrace.cli.finding import CommandError, find, values
from headrace.errors import HeadraceError
from headrace.progress import Progress

app = typer.Typer(
    name="headrace",
    help="Data pipelines: look at them, measure them, find out what makes them slow.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
cache = typer.Typer(no_args_is_help=True, help="What caches keep: say what, and remove it.")
app.add_typer(cache, name="cache")
_PACKAGE = Path(__file__).parents[1]
_TYPER = Path(typer.__file__).parent
_out = Console(soft_wrap=True)
_err = Console(stderr=True, soft_wrap=True)

_Spec = Annotated[
    str,
    typer.Argument(metavar="SCRIPT.PY:NAME", help="The pipeline, or what makes it."),
]
_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An argument of the function or of the pipeline, as batch_size=8. May be repeated.",
    ),
]
_Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FOLDER]...",
        help="Directories that `fn.cache` was given; without one, memory and HEADRACE_FILE_CACHE.",
    ),
]
_Threads = Annotated[int | None, typer.Option(min=1, help="num_threads of the pipeline.")]
_Workers = Annotated[str | None, typer.Option(help="workers of the pipeline: threads, processes.")]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are a line, not a traceback; so are its warnings."""

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                function(**arguments)
        except CommandError as error:
            _err.print(f"[bold red]error:[/] {escape(str(error))}")
            raise typer.Exit(2) from None
        except (HeadraceError, OSError) as error:
            _err.print(f"[bold red]error:[/] {type(error).__name__}: {escape(str(error))}")
            raise typer.Exit(1) from None

    return run


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning, in place of `warnings.showwarning`: where the script did not cause it, the
    line that did is of no interest.
    """
    ours = Path(filename).is_relative_to(_PACKAGE) or Path(filename).is_relative_to(_TYPER)
    where = "" if ours else f" ({filename}:{lineno})"
    _err.print(f"[bold yellow]warning:[/] {escape(str(message))}{escape(where)}")


def _settings(
    given: list[str] | None, threads: int | None = None, workers: str | None = None
) -> dict[str, Any]:
    found = values(given or [])
    if threads is not None:
        found["num_threads"] = threads
    if workers is not None:
        found["workers"] = workers
    return found


def _version(value: bool) -> None:
    if value:
        _out.print(f"Headrace {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it, and end.")
    ] = False,
) -> None:
    pass


@app.command()
@_command
def doctor() -> None:
    """Report installed packages, devices, decoders and caches, and suggest what to install."""
    from headrace.cli.doctor import examine

    found = examine()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    marks = {True: "[green]✓[/] ", False: "[red]✗[/] ", None: "  "}
    for section, lines in found.sections.items():
        table.add_row(f"[cyan]{section}[/]", "")
        for line in lines:
            table.add_row(f"  {escape(line.name)}", marks[line.is_good] + escape(line.value))
    _out.print(table)
    _out.print("\n[cyan]What to do[/]")
    for advice in found.to_do or ["Nothing: all that is needed is there."]:
        _out.print(f"  {escape(advice)}")


@app.command()
@_command
def show(
    spec: _Spec,
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture.")] = Path("batch.png"),
    samples: Annotated[int, typer.Option(min=1, help="How many samples of the batch.")] = 32,
    columns: Annotated[int | None, typer.Option(min=1, help="How many in a row.")] = None,
    size: Annotated[int, typer.Option(min=8, help="Longer side of each, in pixels.")] = 160,
    batch: Annotated[int, typer.Option(min=1, help="Which batch to show.")] = 1,
    set_: _Set = None,
) -> None:
    """Draw a batch: a contact sheet of images, or spectrograms and signals."""
    from headrace.display import show as draw

    pipe = find(spec).make(**values(set_ or []))
    for _ in range(batch):
        outputs = running.take(pipe)
    draw(outputs, out, max_samples=samples, columns=columns, size=size)
    _out.print(f"Wrote {escape(str(out))}: batch {batch}, {len(outputs)} outputs.")


@app.command()
@_command
def graph(
    spec: _Spec,
    out: Annotated[Path, typer.Option("--out", "-o", help="The drawing.")] = Path("graph.svg"),
    set_: _Set = None,
) -> None:
    """Draw the graph: operators, what runs together, what is merged, and on which device."""
    from headrace.cli.graph_drawing import drawing_of
    from headrace.display.files import checked_path, encoded

    checked_path(out)
    pipe = find(spec).make(**values(set_ or []))
    drawing = drawing_of(pipe)
    if out.suffix.lower() == ".svg":
        out.write_text(drawing.svg, encoding="utf-8")
    else:
        from headrace.cli.graph_pixels import pixels_of

        out.write_bytes(encoded(pixels_of(drawing.svg), out.suffix))
    _out.print(
        f"Wrote {escape(str(out))}: {drawing.operators} operators in {drawing.stages} "
        f"stage{'s' if drawing.stages != 1 else ''}."
    )


@app.command()
@_command
def bench(
    spec: _Spec,
    batches: Annotated[int, typer.Option(min=1, help="Batches in a round.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds.")] = 5,
    threads: _Threads = None,
    workers: _Workers = None,
    against: Annotated[
        str | None,
        typer.Option(help="Compare with another value of --threads or --workers, or NAME=VALUE."),
    ] = None,
    set_: _Set = None,
) -> None:
    """Measure samples a second; with --against, of two settings in turn, and their ratio."""
    found = find(spec)
    settings = [_settings(set_, threads, workers)]
    if against is not None:
        settings.append({**settings[0], **_other(against, threads, workers)})
    pipes = [found.make(**one) for one in settings]
    names = _names(settings)
    for pipe, name in zip(pipes, names, strict=True):
        first = running.warm(pipe)
        _out.print(f"{name}: the first batch took {first:.2f} s")
    with Progress("measuring", batches * rounds * len(pipes), "batches") as progress:
        rates = running.measure(pipes, batches, rounds, progress.step)
    table = Table("setting", "samples/s", "lowest", "highest")
    for name, own in zip(names, rates, strict=True):
        table.add_row(
            escape(name), f"{statistics.median(own):,.0f}", f"{min(own):,.0f}", f"{max(own):,.0f}"
        )
    _out.print(table)
    if len(rates) == 2:
        both = running.Comparison(*rates)
        _out.print(
            f"{escape(names[0])} is [bold]{both.ratio:.2f}[/] times as fast as {escape(names[1])} "
            f"({min(both.ratios):.2f} to {max(both.ratios):.2f} in {rounds} rounds)."
        )


def _other(against: str, threads: int | None, workers: str | None) -> dict[str, Any]:
    """The setting that `--against` gives."""
    if "=" in against:
        return values([against])
    if threads is not None and workers is None:
        if not against.isdecimal() or int(against) < 1:
            raise CommandError(f"--against {against}: expected a number of threads.")
        return {"num_threads": int(against)}
    if workers is not None and threads is None:
        return {"workers": against}
    raise CommandError(
        f"--against {against}: another value of what? Give either --threads or --workers, or say "
        "it: --against num_threads=8."
    )


def _names(settings: list[dict[str, Any]]) -> list[str]:
    """Return a label for each run, from the settings in which they differ."""
    shown = []
    for one in settings:
        others = [other for other in settings if other is not one]
        own = {k: v for k, v in one.items() if any(o.get(k) != v for o in others) or not others}
        shown.append(", ".join(f"{k}={v}" for k, v in own.items()) or "as it is")
    return shown


@app.command()
@_command
def profile(
    spec: _Spec,
    batches: Annotated[int, typer.Option(min=2, help="How many batches to take.")] = 100,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page; the timeline goes beside it.")
    ] = Path("profile.html"),
    threads: _Threads = None,
    workers: _Workers = None,
    set_: _Set = None,
) -> None:
    """Find out what a pipeline spends its time on, and what to do: a page, and a timeline."""
    from headrace.profiling import Profile

    found = find(spec)
    record = Profile(out)
    with record:
        pipe = found.make(**_settings(set_, threads, workers))
        if pipe._engine is not None:
            raise CommandError(f"`{spec}` has been built by the script, before it was recorded.")
        with Progress("recording", batches, "batches") as progress:
            running.run(pipe, batches, progress.step)
    for figures in record.figures():
        _out.print(
            f"{figures.samples_per_second:,.0f} samples/s; the consumer waited for "
            f"{100 * figures.consumer_waits:.0f} % of the time."
        )
        _out.print(figures.perfect_loader)
    for advice in record.advice():
        _out.print(f"[bold]{escape(advice.title)}[/]")
        _out.print(f"  {escape(advice.why)}")
        _out.print(f"  {escape(advice.how)}")
    beside = record.path.with_suffix(".trace.json") if record.path is not None else ""
    _out.print(f"Wrote {escape(str(record.path))} and {escape(str(beside))}.")


@app.command()
@_command
def warm(
    spec: _Spec,
    batches: Annotated[int, typer.Option(min=1, help="How many batches to take.")] = 2,
    set_: _Set = None,
) -> None:
    """Compile ahead all that the pipeline needs, so that its first batch is not slow."""
    from headrace.compilation_notice import compiling

    # Worker processes would compile the same, unseen.
    settings = {"workers": "threads", **values(set_ or [])}
    found = find(spec)
    before = compiling.seconds
    pipe = found.make(**(settings if callable(found.value) else {}))
    first = running.warm(pipe)
    with Progress("warming up", batches, "batches") as progress:
        running.run(pipe, batches, progress.step)
    seconds = compiling.seconds - before
    if seconds:
        _out.print(
            f"Compiled for {seconds:.1f} s; the first batch took {first:.1f} s. Later "
            "runs find the kernels in the cache."
        )
    else:
        _out.print(f"Nothing was left to compile; the first batch took {first:.1f} s.")


@cache.command("info")
@_command
def cache_info(folders: _Folders = None) -> None:
    """Say how many samples and files caches keep, and how much space they take."""
    table = Table(box=None, pad_edge=False)
    for name in ("cache", "kept", "MB"):
        table.add_column(name, justify="left" if name == "cache" else "right", overflow="fold")
    for found in caches.found(folders):
        kept = f"{found.number:,} {found.unit}"
        table.add_row(escape(str(found.folder)), kept, f"{found.size_bytes / 1e6:,.1f}")
    _out.print(table if table.row_count else "Nothing is kept.")


@cache.command("clear")
@_command
def cache_clear(folders: _Folders = None) -> None:
    """Remove what caches keep. Pipelines that run go on, and keep samples anew."""
    removed = caches.clear(folders)
    _out.print(f"Removed {removed / 1e6:,.1f} MB.")
