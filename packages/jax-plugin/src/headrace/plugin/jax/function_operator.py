"""The operator behind `jax_function`: calls a function with whole batches as JAX's arrays."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headrace.errors import ArgumentTypeError, DataTypeError, LayoutError, ShapeError
from headrace.operators.support.argument_types import IntArg, ObjectArg
from headrace.operators.support.current_stream import working_on
from headrace.operators.support.operator import BatchOperator, operator
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.plugin.jax.batch_sharding import batch_sharding
from headrace.plugin.jax.convert import from_gpu, host_device, put
from headrace.plugin.jax.function_sharding import as_global, own_rows
from headrace.tensors import TensorListGPU
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.foreign import on_gpu
from headrace.tensors.pool import HOST_POOL
from headrace.types import DALIDataType, to_dali_type

if TYPE_CHECKING:
    from collections.abc import Sequence


@operator(
    "_jax_function",
    inputs=(Input("batch", "Input of the function.", optional=True),),
    args=(
        Arg("function", ObjectArg, REQUIRED, "Function that is called with each batch."),
        Arg("num_outputs", IntArg, 1, "Number of arrays it returns."),
        Arg("output_layouts", ObjectArg, None, "Layouts of the samples it returns."),
        Arg("sharding", ObjectArg, None, "Sharding of the arrays it gets."),
    ),
    num_outputs=lambda args: int(args["num_outputs"]),
    variadic=True,
    hidden=True,
    in_order=True,
    data_dependent_type=True,
    class_name="JaxFunction",
    written="jax_function",
)
class JaxFunction(BatchOperator):
    """Calls a function of JAX's arrays with whole batches."""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Nothing is known before the function has returned."""
        self._layouts = [spec.layout for spec in inputs]
        self._dtypes = [spec.dtype for spec in inputs]
        sharding = self.args.sharding
        self._sharding = None if sharding is None else batch_sharding(sharding)
        return (Spec(DALIDataType.NO_TYPE, None),) * int(self.args.num_outputs)

    def cpu(self, c: Any, *samples: Sequence[np.ndarray]) -> tuple[RuntimeTypedBatch, ...]:
        """Call the function with arrays of JAX's CPU, which share the memory of the batch."""
        device = host_device()
        if device.platform != "cpu":
            raise DataTypeError(
                "JAX has no CPU devices here; let it have them (JAX_PLATFORMS), or give "
                'jax_function the batch on the GPU: `device="gpu"`.'
            )
        batches = [
            _dense(position, rows, c.whole(position)) for position, rows in enumerate(samples)
        ]
        wanted = self._sharding
        arrays = [put(b, device) if wanted is None else as_global(b, wanted) for b in batches]
        with jax.default_device(device):
            results = self._call(c, arrays, "cpu")
        found = [np.asarray(result) for result in results]  # waits for it
        return self._late(found, [to_dali_type(values.dtype) for values in found])

    def gpu(self, c: Any, *batches: DeviceBatch) -> tuple[RuntimeTypedBatch, ...]:
        """Call the function with arrays on the GPU; streams wait for one another."""
        queue = c.queue
        event = queue.runtime.record(queue.stream)
        arrays = []
        for batch, layout, dtype in zip(batches, self._layouts, self._dtypes, strict=True):
            whole = TensorListGPU._from_batch(batch, layout, dtype, None, event, queue.stream)
            arrays.append(from_gpu(whole))
        device, wanted = _gpu(queue.runtime.device_id), self._sharding
        given = arrays if wanted is None else [as_global(array, wanted) for array in arrays]
        if wanted is not None and len(wanted.devices) > 1:
            for array in given:
                array.block_until_ready()  # other GPUs have read the batch, which is taken back
        with working_on(queue.stream), jax.default_device(device):
            results = [put(result, device) for result in self._call(c, given, "gpu")]
        if not results:
            # Nothing comes back whose readiness would tell when the inputs were read.
            for array in arrays:
                (array + 0).block_until_ready()
        found, types = [], []
        for result in results:
            there = on_gpu(result, queue.stream)
            samples = np.arange(c.size, dtype=np.uint64)
            step = there.dtype.itemsize * int(np.prod(there.shape[1:]))
            batch = DeviceBatch(
                there.access.runtime,
                there.access.owners,
                np.uint64(there.address) + samples * np.uint64(step),
                np.tile(np.array(there.shape[1:], np.int64), (c.size, 1)),
                there.dtype,
            )
            queue.keep(batch)
            found.append(batch)
            types.append(to_dali_type(there.dtype))
        return self._late(found, types)

    def _call(self, c: Any, arrays: list[jax.Array], platform: str) -> list[Any]:
        """Call the function and check what it returns: rows for the samples of the batch here."""
        function, size = self.args.function, c.size
        try:
            result = function(*arrays)
        except Exception as error:
            raise c.located(error, None, _raised_at(error, function)) from error
        count = self.args.num_outputs
        results = _as_list(result, count)
        found = []
        for number, value in enumerate(results):
            if not isinstance(value, jax.Array):
                raise ArgumentTypeError(
                    f"Output {number} of the function is a {type(value).__name__}; it has to "
                    "return arrays of JAX."
                )
            devices = value.devices()
            if {device.platform for device in devices} != {platform}:
                raise ArgumentTypeError(
                    f"Output {number} of the function is on {devices}, but its inputs are "
                    f"on the {platform.upper()}; it has to stay there."
                )
            if self._sharding is not None and value.ndim:
                value = own_rows(value, number)
            elif len(devices) > 1:
                raise ArgumentTypeError(
                    f"Output {number} of the function is on {len(devices)} devices, but its inputs "
                    "are on one. Give `jax_function` the `sharding` that its inputs are to have."
                )
            if value.ndim == 0 or len(value) != size:
                raise ShapeError(
                    f"The first axis of what the function returns has to be the current batch size "
                    f"of {size}, but the output at index {number} has the shape {_shape(value)}."
                )
            found.append(value)
        return found

    def _late(
        self, found: Sequence[Any], types: list[DALIDataType]
    ) -> tuple[RuntimeTypedBatch, ...]:
        """Outputs for the engine, of element types known only now."""
        late = []
        for number, (values, dtype) in enumerate(zip(found, types, strict=True)):
            # The first axis of an array counts the samples.
            ndim = values.ndim - 1 if isinstance(values, np.ndarray) else values.ndim
            late.append(RuntimeTypedBatch(values, Spec(dtype, ndim, self._layout(number, ndim))))
        return tuple(late)

    def _layout(self, number: int, ndim: int) -> str:
        """Layout of the samples of an output."""
        layouts = self.args.output_layouts
        if layouts is None:
            own = self._layouts[number] if number < len(self._layouts) else ""
            return own if len(own) == ndim else ""
        if not isinstance(layouts, str):
            layouts = layouts[number] if number < len(layouts) else ""
        if layouts and len(layouts) != ndim:
            raise LayoutError(
                f'The layout "{layouts}" of output {number} (`output_layouts`) has not one letter '
                f"for each of the {ndim} axes of its samples."
            )
        return str(layouts)


def _as_list(result: Any, count: int) -> list[Any]:
    if count == 0:
        if result is not None:
            raise ArgumentTypeError(
                f"The function returned a {type(result).__name__}, but `num_outputs` is 0: it has "
                "to return None."
            )
        return []
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != count:
        raise ArgumentTypeError(
            f"The function is to return (a tuple of) `num_outputs={count}` outputs, but returned "
            f"{len(results)}."
        )
    return results


def _shape(value: jax.Array) -> str:
    return " x ".join(map(str, value.shape)) or "()"


def _dense(position: int, rows: Sequence[np.ndarray], whole: np.ndarray | None) -> np.ndarray:
    """All samples of an input as one array; shared if they lie in one piece."""
    if whole is not None:
        return whole
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        raise ShapeError(
            f"Input {position} is a batch of samples with different shapes "
            f"({', '.join(map(str, sorted(shapes)[:3]))}), which cannot be one array. "
            "`fn.resize`, `fn.crop` or `fn.pad` makes them so."
        )
    array = HOST_POOL.empty((len(rows), *shapes.pop()), rows[0].dtype)
    np.stack(rows, out=array)
    return array


def _raised_at(error: Exception, function: Any) -> str:
    """The innermost line in the file of the function, of which JAX may have made another one."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = ""
    trace = error.__traceback__
    while trace is not None and code is not None:
        inside = trace.tb_frame.f_code
        if inside.co_filename == code.co_filename:
            found = f"{inside.co_filename}:{trace.tb_lineno} in {inside.co_name}"
        trace = trace.tb_next
    return found


def _gpu(number: int) -> jax.Device:
    """The device of JAX that CUDA gives this number."""
    found = jax.local_devices(backend="gpu")
    return next(device for device in found if device.local_hardware_id == number)
