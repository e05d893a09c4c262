"""`jax_function`: a function of JAX's arrays becomes one of a pipeline's edges."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, NotYetSupportedError
from headrace.graph.capture import call
from headrace.graph.user_line import user_line
from headrace.plugin.jax.batch_sharding import batch_sharding
from headrace.plugin.jax.function_operator import JaxFunction
from headrace.tracebacks import public

if TYPE_CHECKING:
    from jax.sharding import Sharding


def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | Sequence[str] | None = None,
    sharding: Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Any:
    """Turn a function of JAX's arrays into one that can be used in a pipeline definition.

    The function gets each input as one array, with the samples along the first axis, and returns
    arrays with as many samples. It may be compiled and mapped::

        @headrace.plugin.jax.fn.jax_function
        @jax.jit
        @jax.vmap
        def flip(image):  # HWC
            return image[:, ::-1]


        @data_iterator(output_map=["images"], reader_name="reader")
        def flipped(root):
            encoded, _ = fn.readers.file(file_root=root, name="reader")
            return flip(fn.resize(fn.decoders.image(encoded), size=(224, 224)))

    What it gets is shared with the pipeline, on the CPU and on a GPU, where JAX's streams wait for
    the pipeline's and the other way round, and the program for neither. It is called in a thread
    of the pipeline, for one batch after the other, in their order, and may hold on to its
    arguments.

    Parameters
    ----------
    function
        The function, when this is used without parentheses. It takes as many arrays as the result
        is given edges.
    num_outputs
        How many arrays it returns: one as it is, several as a tuple, none as `None`.
    output_layouts
        Layout of the samples of each output, or one for all. Without it, an output has the layout
        of the input in its place, if it has as many axes.
    sharding
        Have the function get global arrays with this sharding, of which the batch here is what
        the devices of this process have: in equal parts, in their order along the batch. Outputs
        are brought together again.
    device
        ``"cpu"`` or ``"gpu"``. Where it runs; where its inputs are, by default.
    preserve
        Call the function even if nothing uses what it returns.

    Returns
    -------
    A function of edges; or, without `function`, a decorator.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not go together.
    NotYetSupportedError
        If the result is called with tensors or batches of dynamic mode.
    """
    _check(num_outputs, output_layouts, sharding, device)

    def decorate(decorated: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(decorated):
            raise ArgumentTypeError(f"`jax_function` decorates a function, got {decorated!r}.")

        @public
        @functools.wraps(decorated)
        def in_pipeline(*inputs: Any) -> Any:
            _check_inputs(inputs)
            return call(
                JaxFunction.schema,
                inputs,
                {
                    "function": decorated,
                    "num_outputs": num_outputs,
                    "output_layouts": output_layouts,
                    "sharding": sharding,
                    "device": device,
                    "preserve": preserve,
                },
            )

        return in_pipeline

    return decorate if function is None else decorate(function)


def _check(num_outputs: Any, output_layouts: Any, sharding: Any, device: Any) -> None:
    if not isinstance(num_outputs, int) or num_outputs < 0:
        raise ArgumentValueError(
            f"`num_outputs` is {num_outputs!r}; it is the number of arrays the function returns, "
            "0 or more."
        )
    if output_layouts is not None and not isinstance(output_layouts, str):
        layouts = list(output_layouts)
        if len(layouts) > num_outputs or not all(isinstance(k, str) for k in layouts):
            raise ArgumentValueError(
                f"`output_layouts` is {output_layouts!r}; expected a layout, or one for each of "
                f"{num_outputs} outputs."
            )
    if device not in (None, "cpu", "gpu"):
        raise ArgumentValueError(f'`device` is {device!r}; it can be "cpu", "gpu" or None.')
    if sharding is not None:
        batch_sharding(sharding)


def _check_inputs(inputs: Sequence[Any]) -> None:
    dynamic = sys.modules.get("headrace.experimental.dynamic")
    for value in inputs:
        if dynamic is not None and isinstance(value, (dynamic.Tensor, dynamic.Batch)):
            raise NotYetSupportedError(
                f"`jax_function`, used at {user_line()}, is for definitions of pipelines, and got "
                f"a {type(value).__name__} of dynamic mode. Call the function of JAX itself there: "
                "`function(jax.numpy.asarray(ndd.as_tensor(batch)))`."
            )
