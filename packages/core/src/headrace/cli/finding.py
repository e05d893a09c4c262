"""Finds the pipeline that a user means by ``script.py:name``."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from headrace.errors import did_you_mean
from headrace.pipeline import Pipeline


class CommandError(Exception):
    """Error in the command that the user typed, in one line."""


class PipelineSource(NamedTuple):
    """Something in a script that pipelines can be had from."""

    spec: str
    name: str
    value: Any
    """A `Pipeline`, a function that `pipeline_def` has made, or a sub-class of `Pipeline`."""

    def make(self, **arguments: Any) -> Pipeline:
        """The pipeline, not built yet; where it is made now, with these arguments."""
        if isinstance(self.value, Pipeline):
            if arguments:
                given = ", ".join(sorted(arguments))
                raise CommandError(
                    f"`{self.spec}` is a pipeline that the script has made already, so that "
                    f"{given} cannot be set. Name the function that makes it (`@pipeline_def`)."
                )
            return self.value
        self._check_required(arguments)
        made = self.value(**arguments)
        if not isinstance(made, Pipeline):
            raise CommandError(f"`{self.spec}` has made a {type(made).__name__}, not a Pipeline.")
        return made

    def _check_required(self, arguments: dict[str, Any]) -> None:
        try:
            parameters = inspect.signature(self.value).parameters.values()
        except (TypeError, ValueError):
            return
        missing = [
            p.name
            for p in parameters
            if p.default is p.empty
            and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            and p.name not in arguments
        ]
        if missing:
            flags = " ".join(f"--set {name}=..." for name in missing)
            raise CommandError(f"`{self.spec}` needs {' and '.join(missing)}: add {flags}")


def find(spec: str) -> PipelineSource:
    """Return the pipeline source that `spec` names, as ``train.py:pipeline`` does.

    Without a name, the script must contain exactly one.
    """
    path, name = _split(spec)
    module = _imported(path)
    known = {k: v for k, v in vars(module).items() if _is_source(v, module)}
    listed = ", ".join(known) or "none"
    if not name:
        if len(known) == 1:
            ((name, value),) = known.items()
            return PipelineSource(spec, name, value)
        raise CommandError(
            f"Say which pipeline of {path.name} is meant: {path.name}:NAME. It has: {listed}."
        )
    if name in known:
        return PipelineSource(spec, name, known[name])
    if hasattr(module, name):
        kind = type(getattr(module, name)).__name__
        raise CommandError(
            f"`{name}` in {path.name} is a {kind}; expected a Pipeline or a function with "
            f"@pipeline_def. It has: {listed}."
        )
    raise CommandError(
        f"There is no `{name}` in {path.name}.{did_you_mean(name, known)} It has: {listed}."
    )


def values(given: list[str]) -> dict[str, Any]:
    """Arguments from ``name=value``; what is no Python literal is taken as text."""
    found = {}
    for item in given:
        name, is_there, text = item.partition("=")
        if not is_there or not name.isidentifier():
            raise CommandError(f"`{item}` is no setting; expected name=value, as batch_size=8.")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def _split(spec: str) -> tuple[Path, str]:
    path, colon, name = spec.rpartition(":")
    if not colon or name.endswith(".py"):
        path, name = spec, ""
    script = Path(path)
    if not script.is_file():
        raise CommandError(f"There is no file {path!r}; expected script.py:name.")
    if script.suffix != ".py":
        raise CommandError(f"{path!r} is no Python script; expected script.py:name.")
    return script, name


def _imported(path: Path) -> ModuleType:
    """The script as a module: it is run, but what is below ``__name__ == "__main__"``."""
    name = path.stem if path.stem.isidentifier() else "pipeline_script"
    if name in sys.modules:  # of another one of that name
        name = f"script_{name}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    sys.path.insert(0, str(path.absolute().parent))
    try:
        found.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path.name} cannot be run: {type(error).__name__}: {error}") from error
    import cloudpickle  # type: ignore[import-untyped]

    # Worker processes are started anew, and would look for it under this name.
    cloudpickle.register_pickle_by_value(module)
    return module


def _is_source(value: Any, module: ModuleType) -> bool:
    if isinstance(value, Pipeline) or getattr(value, "_is_pipeline_def", False):
        return True
    return (
        isinstance(value, type)
        and issubclass(value, Pipeline)
        and value.__module__ == module.__name__
    )
