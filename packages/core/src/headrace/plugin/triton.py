"""Pipelines for model repositories of the Triton inference server.

There, a Python file with one decorated definition stands for a serialized pipeline::

    @headrace.plugin.triton.autoserialize
    @headrace.pipeline_def(batch_size=32, num_threads=4, device_id=0)
    def preprocess():
        encoded = fn.external_source(name="DALI_INPUT_0")
        return fn.resize(fn.decoders.image(encoded), size=(224, 224))

`invoke_autoserialize` is what a server does with such a file.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import ArgumentTypeError, UsageError
from headrace.tracebacks import public

if TYPE_CHECKING:
    import os

__all__ = ["autoserialize", "invoke_autoserialize"]

_F = TypeVar("_F")


def __dir__() -> list[str]:
    return [*__all__]


@public
def autoserialize(dali_pipeline: _F) -> _F:
    """Mark the definition that stands for its file; there may be one in each.

    Parameters
    ----------
    dali_pipeline
        A function that is decorated with `pipeline_def`. It is called without arguments.

    Raises
    ------
    ArgumentTypeError
        If it is not.
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise ArgumentTypeError(
            "Only `@pipeline_def` can be decorated with `@triton.autoserialize`. Put it below, got "
            f"{dali_pipeline!r}."
        )
    dali_pipeline._is_autoserialize = True  # type: ignore[attr-defined]
    return dali_pipeline


@public
def invoke_autoserialize(head_module: ModuleType, filename: str | os.PathLike[str]) -> None:
    """Write the pipeline of the marked definition to a file, as `Pipeline.serialize` does.

    Parameters
    ----------
    head_module
        The module with the definition; or the module of a package, or one that imports others
        from its own folder, and one of these has it.
    filename
        The file.

    Raises
    ------
    UsageError
        If there is none, or several.
    """
    found = _marked(head_module)
    if len(found) != 1:
        names = ", ".join(f"`{f.__module__}.{f.__qualname__}`" for f in found) or "none"
        raise UsageError(
            "Precisely one autoserialize function must exist in the module. In "
            f"`{head_module.__name__}` and what it imports from its folder, {len(found)} are "
            f"decorated with `@triton.autoserialize`: {names}."
        )
    found[0]().serialize(filename=filename)


def _marked(head_module: ModuleType) -> list[Any]:
    folder = Path(getattr(head_module, "__file__", None) or ".").resolve().parent
    modules, functions = [head_module], {}
    for module in modules:  # it grows
        for value in vars(module).values():
            if inspect.isfunction(value) and getattr(value, "_is_autoserialize", False):
                functions[id(value)] = value
            elif isinstance(value, ModuleType) and value not in modules:
                file = getattr(value, "__file__", None)
                if file is not None and folder in Path(file).resolve().parents:
                    modules.append(value)
    return list(functions.values())
