"""`Profile`: what the pipelines of a program spend their time on."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.profiling.advice import Advice, advice_for
from headrace.profiling.figures import Figures, figures_of
from headrace.profiling.recorder import ProfileRecorder
from headrace.profiling.stragglers import rank_report

_SUFFIXES = (".html", ".json")
_current: list[Profile] = []
"""Those of the ``with`` statements that are being run, innermost last."""


class Profile:
    """A record of pipelines, and what follows from it.

    To be given to pipelines (``Pipeline(profile=...)``), or used in a ``with`` statement, which
    records every pipeline that is built in it.

    Parameters
    ----------
    path
        File of the page (``.html``; the timeline goes beside it, with the suffix
        ``.trace.json``), or the timeline alone (``.json``). None to write nothing: see `save`.

    Raises
    ------
    ArgumentValueError
        If the path has another suffix, or lies in no folder.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else _checked(path)
        self.recorders: list[ProfileRecorder] = []
        """One for each pipeline, in the order in which they were built."""
        self._lock = threading.Lock()
        self._is_open = False
        """True if a ``with`` statement will write the page."""

    def __repr__(self) -> str:
        count = len(self.recorders)
        return f"Profile({str(self.path) if self.path else None!r}, pipelines={count})"

    def __enter__(self) -> Self:
        _current.append(self)
        self._is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.remove(self)
        self._is_open = False
        if not self.recorders and kind is None:
            raise UsageError(
                "Nothing was recorded: no pipeline was built within the `with` statement of "
                "`headrace.profile`. Pipelines that were built before run without a record; build "
                "them there, or give the profile to them: Pipeline(profile=...)."
            )
        if self.path is not None and self.recorders:
            self.save()

    def figures(self) -> list[Figures]:
        """Figures of each pipeline, over the time after its first batch."""
        return [figures_of(recorder) for recorder in list(self.recorders)]

    def rank_report(
        self, rank: int | None = None, folder: str | os.PathLike[str] | None = None
    ) -> dict[str, Any]:
        """Report of this process for `headrace.stragglers`: of plain types, to be sent or written.

        Parameters
        ----------
        rank
            Number of the process among those of the training; by default what torchrun, MPI or
            Slurm say.
        folder
            A folder that all ranks share, to write ``rank-<number>.json`` to.

        Raises
        ------
        UsageError
            If no pipeline was recorded.
        """
        if not self.recorders:
            raise UsageError("Nothing was recorded: no pipeline was built with this profile.")
        report = rank_report(self.figures()[0], rank)
        if folder is not None:
            name = f"rank-{os.getpid() if report['rank'] is None else report['rank']}.json"
            Path(folder, name).write_text(json.dumps(report))
        return report

    def advice(self) -> list[Advice]:
        """Return the advice about the pipelines, one after the other."""
        return [advice for figures in self.figures() for advice in advice_for(figures)]

    def html(self) -> str:
        """The page: HTML that refers to nothing else."""
        from headrace.profiling.page import page

        return page(list(self.recorders))

    def timeline(self) -> dict[str, Any]:
        """The timeline, in the format of trace events, which Perfetto and Chrome read."""
        from headrace.profiling.timeline import timeline

        return timeline(list(self.recorders))

    def save(self, path: str | os.PathLike[str] | None = None) -> list[Path]:
        """Write the page and the timeline; return the files.

        Parameters
        ----------
        path
            As the argument of the class; that one when not given.

        Raises
        ------
        UsageError
            If there is no path at all.
        OSError
            If a file cannot be written.
        """
        from headrace.profiling.timeline import written

        target = self.path if path is None else _checked(path)
        if target is None:
            raise UsageError("This profile has no path; give one: save('profile.html').")
        if target.suffix == ".json":
            target.write_text(written(self.timeline()), encoding="utf-8")
            return [target]
        beside = target.with_suffix(".trace.json")
        target.write_text(self.html(), encoding="utf-8")
        beside.write_text(written(self.timeline()), encoding="utf-8")
        return [target, beside]

    def begin(self, recorder: ProfileRecorder) -> None:
        """Take in the record of a pipeline that is being built."""
        with self._lock:
            self.recorders.append(recorder)
            recorder.setup.name = f"pipeline {len(self.recorders)}"

    def ended(self, recorder: ProfileRecorder) -> None:
        """Write the files, as a pipeline has ended, unless a ``with`` statement does that later."""
        if self.path is not None and not self._is_open and recorder in self.recorders:
            self.save()


def profile(path: str | os.PathLike[str] | None = None) -> Profile:
    """Record the pipelines that are built in a ``with`` statement: ``with profile("out.html"):``.

    Parameters
    ----------
    path
        File of the page; see `Profile`.
    """
    return Profile(path)


def current_profile() -> Profile | None:
    """That of the innermost ``with`` statement, if there is any."""
    return _current[-1] if _current else None


def as_profile(value: Any) -> Profile | None:
    """Return the profile for the argument `profile`, which may be a path.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If it is nothing that a profile can be written to.
    """
    if value is None or isinstance(value, Profile):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Profile(value)
    raise ArgumentTypeError(
        f"`profile` is {value!r}; expected a path that ends in .html or .json, or a "
        "`headrace.profiling.Profile`."
    )


def _checked(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix not in _SUFFIXES:
        raise ArgumentValueError(
            f"`profile` is {str(path)!r}; expected a path that ends in .html, for a page and a "
            "timeline beside it, or in .json, for a timeline alone."
        )
    target = target.absolute()
    if not target.parent.is_dir():
        raise ArgumentValueError(
            f"`profile` is {str(path)!r}, and there is no folder {str(target.parent)!r}."
        )
    return target
