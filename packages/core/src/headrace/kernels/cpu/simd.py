"""Sixteen float32 numbers at a time: the vector instructions that compiled kernels are built of.

Numba vectorises simple loops by itself, but not those that matter most to image kernels: a
transposition, a sum over a number of taps that is known at run time, a de-interleaving of
channels. These intrinsics say what is wanted in LLVM's portable vector types, and LLVM turns each
into what the processor has: one 512 bit register, two of 256 or four of 128 bits.

A *vector* is a value of type `vector` below; some intrinsics also take a single float32. Memory is
addressed by **byte** offsets from the first element of an array of any layout, without any check:
callers keep offsets inside. Loads convert the array's elements to float32, stores go the other way,
by these kinds of target arrays:

=============  ========================================================
element type   meaning
=============  ========================================================
``float32``    as it is
``uint8``      the low 8 bits of the number made an integer
``int16``      the low 16 bits of the number made an integer
``uint16``     the bits of a float16 (see `headrace.kernels.cpu.half`)
=============  ========================================================

Integers are expected to be whole and in range already: see `round_even` and `round_away`. Arrays of
signed bytes or unsigned words are handed over as views of the type in the table; the bits are the
same.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 16
"""Numbers in a vector."""
VECTOR_BYTES = 4 * LANES
"""Bytes of a vector in memory."""
CACHE_LINE = 64
"""Bytes that processors read and write at a time."""

_BIT, _BYTE, _INT, _LONG = (ir.IntType(width) for width in (1, 8, 32, 64))
_FLOAT = ir.FloatType()
_FLOATS = ir.VectorType(_FLOAT, LANES)


class Vector(types.Type):  # type: ignore[misc]
    """Numba's name for a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _FLOATS)


def spread_scalar(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    """Code for a vector with `scalar` in each lane."""
    kind = ir.VectorType(scalar.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _indices([0] * lanes))


def _indices(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT, len(numbers)), numbers)


def _stored_type(dtype: Any) -> Any:
    """LLVM's type of one element of an array that is loaded from."""
    return _FLOAT if dtype == types.float32 else ir.IntType(dtype.bitwidth)


def _shaped_like(value: Any, element: Any) -> Any:
    """The type with `element` in place of the numbers of `value`, a vector or a single one."""
    return ir.VectorType(element, LANES) if isinstance(value.type, ir.VectorType) else element


def _to_floats(builder: Any, value: Any, dtype: Any) -> Any:
    if dtype == types.float32:
        return value
    floats = _shaped_like(value, _FLOAT)
    return builder.sitofp(value, floats) if dtype.signed else builder.uitofp(value, floats)


def _from_floats(builder: Any, value: Any, dtype: Any) -> Any:
    if dtype == types.float32:
        return value
    if dtype == types.uint16:
        return builder.fptrunc(value, _shaped_like(value, ir.HalfType()))
    whole = builder.fptosi(value, _shaped_like(value, _INT))
    return builder.trunc(whole, _shaped_like(value, ir.IntType(dtype.bitwidth)))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _BYTE.as_pointer()), [offset])


def _typed(builder: Any, pointer: Any, kind: Any) -> Any:
    return builder.bitcast(pointer, kind.as_pointer())


def _suffix(kind: Any) -> str:
    """Suffix of LLVM's intrinsics for a vector type."""
    element = getattr(kind, "element", kind)
    name = {_FLOAT: "f32", ir.HalfType(): "f16"}.get(element) or f"i{element.width}"
    return name if element is kind else f"v{kind.count}{name}"


def call_llvm(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Code that calls a function of LLVM's with a result of this type."""
    signature = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), arguments)


def _first_lanes(builder: Any, count: Any) -> Any:
    """A mask of the first `count` lanes."""
    numbers = ir.Constant(ir.VectorType(_LONG, LANES), list(range(LANES)))
    return builder.icmp_signed("<", numbers, spread_scalar(builder, count))


@intrinsic  # type: ignore[misc]
def spread(typing: Any, number: Any) -> Any:
    """A float32 in every lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return spread_scalar(builder, args[0])

    return vector(types.float32), generate


@intrinsic  # type: ignore[misc]
def load(typing: Any, array: Any, offset: Any) -> Any:
    """Sixteen neighbouring elements of `array`, converted to float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(_stored_type(array.dtype), LANES)
        place = _typed(builder, _pointer(context, builder, array, args[0], args[1]), kind)
        return _to_floats(builder, builder.load(place, align=1), array.dtype)

    return vector(array, types.int64), generate


@intrinsic  # type: ignore[misc]
def load_number(typing: Any, array: Any, offset: Any) -> Any:
    """One element of `array`, converted to float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = _stored_type(array.dtype)
        place = _typed(builder, _pointer(context, builder, array, args[0], args[1]), kind)
        return _to_floats(builder, builder.load(place, align=1), array.dtype)

    return types.float32(array, types.int64), generate


@intrinsic  # type: ignore[misc]
def load_first(typing: Any, array: Any, offset: Any, count: Any) -> Any:
    """The first `count` of sixteen neighbours; the others are 0 and their memory is not touched."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(_stored_type(array.dtype), LANES)
        place = _typed(builder, _pointer(context, builder, array, args[0], args[1]), kind)
        mask = _first_lanes(builder, args[2])
        value = call_llvm(
            builder,
            f"llvm.masked.load.{_suffix(kind)}.p0",
            kind,
            [place, ir.Constant(_INT, 1), mask, ir.Constant(kind, None)],
        )
        return _to_floats(builder, value, array.dtype)

    return vector(array, types.int64, types.int64), generate


@intrinsic(prefer_literal=True)  # type: ignore[misc]
def load_channel(
    typing: Any, array: Any, offset: Any, channels: Any, channel: Any, backwards: Any
) -> Any:
    """One channel of sixteen neighbouring pixels.

    `channels`, `channel` and `backwards` are literals; the last says that lane 0 is to hold the
    pixel of the highest address. All of the pixels' memory is read.
    """
    many, which = channels.literal_value, channel.literal_value
    order = range(LANES - 1, -1, -1) if backwards.literal_value else range(LANES)
    chosen = [pixel * many + which for pixel in order]
    signature = vector(array, types.int64, channels, channel, backwards)
    return signature, _picking(array.dtype, many, chosen)


@intrinsic(prefer_literal=True)  # type: ignore[misc]
def load_pixels(
    typing: Any,
    array: Any,
    offset: Any,
    channels: Any,
    wanted_channels: Any,
    part: Any,
    backwards: Any,
) -> Any:
    """Sixteen neighbouring elements of sixteen pixels that have got further channels of zeros.

    `channels`, `wanted_channels`, `part` and `backwards` are literals. Parts 0 to
    ``wanted_channels - 1`` together are all the elements, beginning with the pixel of the lowest
    address, or of the highest if `backwards`. All of the pixels' memory is read.
    """
    many, wanted = channels.literal_value, wanted_channels.literal_value
    first = part.literal_value * LANES
    chosen = []
    for element in range(first, first + LANES):
        pixel, channel = divmod(element, wanted)
        if backwards.literal_value:
            pixel = LANES - 1 - pixel
        chosen.append(pixel * many + channel if channel < many else LANES * many)
    signature = vector(array, types.int64, channels, wanted_channels, part, backwards)
    return signature, _picking(array.dtype, many, chosen)


def _picking(dtype: Any, channels: int, chosen: list[int]) -> Any:
    """Code that loads sixteen pixels and picks some of their elements; one past the last is 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(_stored_type(dtype), LANES * channels)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        pixels = builder.load(_typed(builder, pointer, kind), align=1)
        zeros = ir.Constant(kind, None)
        picked = builder.shuffle_vector(pixels, zeros, _indices(chosen))
        return _to_floats(builder, picked, dtype)

    return generate


@intrinsic  # type: ignore[misc]
def prefetch(typing: Any, array: Any, offset: Any) -> Any:
    """Begin to bring a place into the cache; the place need not exist."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(context, builder, array, args[0], args[1])
        reading, keep, data = (ir.Constant(_INT, flag) for flag in (0, 3, 1))
        call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), [place, reading, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic  # type: ignore[misc]
def store(typing: Any, array: Any, offset: Any, value: Any) -> Any:
    """Write a vector to sixteen neighbouring elements, or a single float32 to one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = _from_floats(builder, args[2], array.dtype)
        place = _pointer(context, builder, array, args[0], args[1])
        builder.store(given, _typed(builder, place, given.type), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


@intrinsic  # type: ignore[misc]
def store_first(typing: Any, array: Any, offset: Any, value: Any, count: Any) -> Any:
    """Write the first `count` lanes of a vector; the memory after them is not touched."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = _from_floats(builder, args[2], array.dtype)
        place = _pointer(context, builder, array, args[0], args[1])
        place = _typed(builder, place, given.type)
        mask = _first_lanes(builder, args[3])
        name = f"llvm.masked.store.{_suffix(given.type)}.p0"
        call_llvm(builder, name, ir.VoidType(), [given, place, ir.Constant(_INT, 1), mask])
        return context.get_dummy_value()

    return types.void(array, types.int64, vector, types.int64), generate


def _by_lane(instruction: str) -> Any:
    """Intrinsic for an LLVM instruction on two vectors, lane by lane."""

    def typed(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args)

        return vector(vector, vector), generate

    return intrinsic(typed)


add, subtract, multiply = _by_lane("fadd"), _by_lane("fsub"), _by_lane("fmul")


@intrinsic  # type: ignore[misc]
def store_pixels(typing: Any, array: Any, offset: Any, a: Any, b: Any, c: Any) -> Any:
    """Write sixteen neighbouring pixels of three channels, of which each vector is one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, second, third = [_from_floats(builder, v, array.dtype) for v in args[2:]]
        two = builder.shuffle_vector(first, second, _indices(list(range(2 * LANES))))
        behind = _indices(list(range(LANES)) + [0] * LANES)
        one = builder.shuffle_vector(third, ir.Constant(third.type, ir.Undefined), behind)
        order = [channel * LANES + pixel for pixel in range(LANES) for channel in range(3)]
        pixels = builder.shuffle_vector(two, one, _indices(order))
        place = _pointer(context, builder, array, args[0], args[1])
        builder.store(pixels, _typed(builder, place, pixels.type), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, a, b, c), generate


@intrinsic  # type: ignore[misc]
def store_levels(typing: Any, array: Any, offset: Any, a: Any, b: Any, c: Any) -> Any:
    """`store_pixels` for bytes, of numbers from 0 to below 256 alone."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # A word for each pixel, of which three bytes count: cheaper than to shuffle three vectors.
        words = ir.VectorType(_INT, LANES)
        first, second, third = [builder.fptosi(v, words) for v in args[2:]]
        for shift, part in ((8, second), (16, third)):
            by = ir.Constant(words, [shift] * LANES)
            first = builder.or_(first, builder.shl(part, by))
        pixels = builder.bitcast(first, ir.VectorType(_BYTE, 4 * LANES))
        place = _pointer(context, builder, array, args[0], args[1])
        for quarter in range(4):
            kept = [16 * quarter + 4 * pixel + k for pixel in range(4) for k in range(3)]
            # Four bytes behind are written over by the next quarter; the last one has none.
            part = builder.shuffle_vector(pixels, pixels, _indices(kept + kept[:4]))
            at = builder.gep(place, [ir.Constant(_LONG, 12 * quarter)])
            if quarter < 3:
                builder.store(part, _typed(builder, at, part.type), align=1)
                continue
            for kind, begin in ((_LONG, 0), (_INT, 2)):
                many = builder.bitcast(part, ir.VectorType(kind, 128 // kind.width))
                value = builder.extract_element(many, ir.Constant(_INT, begin))
                to = builder.gep(at, [ir.Constant(_LONG, 4 * begin)])
                builder.store(value, _typed(builder, to, kind), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, a, b, c), generate


@intrinsic  # type: ignore[misc]
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` with one rounding, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call_llvm(builder, f"llvm.fma.{_suffix(_FLOATS)}", _FLOATS, list(args))

    return vector(vector, vector, vector), generate


@intrinsic  # type: ignore[misc]
def square_root(typing: Any, value: Any) -> Any:
    """Square root, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call_llvm(builder, f"llvm.sqrt.{_suffix(_FLOATS)}", _FLOATS, list(args))

    return vector(vector), generate


@intrinsic  # type: ignore[misc]
def larger(typing: Any, a: Any, b: Any) -> Any:
    """Larger of `a` and `b` in each lane; `b` where either is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return vector(vector, vector), generate


@intrinsic  # type: ignore[misc]
def smaller(typing: Any, a: Any, b: Any) -> Any:
    """Smaller of `a` and `b` in each lane; `b` where either is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return vector(vector, vector), generate


def _rounding(name: str, *, nan_to_zero: bool) -> Any:
    """Code that rounds by LLVM's function `name` and clamps."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, low, high = args
        kind = value.type
        if isinstance(kind, ir.VectorType):
            low, high = spread_scalar(builder, low), spread_scalar(builder, high)
        suffix = _suffix(kind)
        if nan_to_zero:
            number = builder.fcmp_ordered("ord", value, value)
            value = builder.select(number, value, ir.Constant(kind, None))
        whole = call_llvm(builder, f"llvm.{name}.{suffix}", kind, [value])
        whole = call_llvm(builder, f"llvm.maxnum.{suffix}", kind, [whole, low])
        return call_llvm(builder, f"llvm.minnum.{suffix}", kind, [whole, high])

    return generate


@intrinsic  # type: ignore[misc]
def round_even(typing: Any, value: Any, low: Any, high: Any) -> Any:
    """Whole numbers from `low` to `high`, halves to the even one; not-a-number becomes `low`."""
    return value(value, types.float32, types.float32), _rounding("rint", nan_to_zero=False)


@intrinsic  # type: ignore[misc]
def round_away(typing: Any, value: Any, low: Any, high: Any) -> Any:
    """Whole numbers from `low` to `high`, halves away from 0; not-a-number becomes 0."""
    return value(value, types.float32, types.float32), _rounding("round", nan_to_zero=True)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Columns of a square of vectors: blocks off the diagonal are exchanged, halving their size."""
    step = LANES // 2
    while step:
        upper = _indices([k if not k & step else LANES + (k ^ step) for k in range(LANES)])
        lower = _indices([k | step if not k & step else LANES + k for k in range(LANES)])
        exchanged = list(rows)
        for i in range(LANES):
            if not i & step:
                a, b = rows[i], rows[i | step]
                exchanged[i] = builder.shuffle_vector(a, b, upper)
                exchanged[i | step] = builder.shuffle_vector(a, b, lower)
        rows = exchanged
        step //= 2
    return rows


@intrinsic  # type: ignore[misc]
def transpose(
    typing: Any,
    source: Any,
    source_offset: Any,
    source_stride: Any,
    target: Any,
    target_offset: Any,
    target_stride: Any,
    rows: Any,
    columns: Any,
    past_caches: Any,
) -> Any:
    """Turn sixteen vectors, `source_stride` bytes apart, into rows, `target_stride` bytes apart.

    Row r is made of lane r of each vector. Only the first `rows` rows and of each the first
    `columns` elements are written; both may be larger than what there is. With `past_caches`, for
    float32 targets whose rows all start on a cache line, whole lines go to memory without being
    read first; see `publish`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given, offset, stride, out, out_offset, out_stride, rows, columns, past_caches = args
        vectors = []
        for i in range(LANES):
            place = builder.add(offset, builder.mul(stride, ir.Constant(_LONG, i)))
            place = _pointer(context, builder, source, given, place)
            vectors.append(builder.load(_typed(builder, place, _FLOATS), align=4))
        values = [_from_floats(builder, v, target.dtype) for v in _transposed(builder, vectors)]
        kind = values[0].type
        places = []
        for i in range(LANES):
            place = builder.add(out_offset, builder.mul(out_stride, ir.Constant(_LONG, i)))
            place = _pointer(context, builder, target, out, place)
            places.append(_typed(builder, place, kind))
        lanes = ir.Constant(_LONG, LANES)
        full = builder.and_(
            builder.icmp_signed(">=", rows, lanes), builder.icmp_signed(">=", columns, lanes)
        )
        with builder.if_else(full, likely=True) as (then, otherwise):
            with then, builder.if_else(past_caches) as (past, through):
                flag = builder.module.add_metadata([ir.Constant(_INT, 1)])
                for way, align in ((past, CACHE_LINE), (through, 1)):
                    with way:
                        for value, place in zip(values, places, strict=True):
                            done = builder.store(value, place, align=align)
                            if way is past:
                                done.set_metadata("nontemporal", flag)
            with otherwise:
                mask = _first_lanes(builder, columns)
                name = f"llvm.masked.store.{_suffix(kind)}.p0"
                for i, (value, place) in enumerate(zip(values, places, strict=True)):
                    with builder.if_then(builder.icmp_signed(">", rows, ir.Constant(_LONG, i))):
                        align = ir.Constant(_INT, 1)
                        call_llvm(builder, name, ir.VoidType(), [value, place, align, mask])
        return context.get_dummy_value()

    i = types.int64
    return types.void(source, i, i, target, i, i, i, i, types.boolean), generate


@intrinsic  # type: ignore[misc]
def publish(typing: Any) -> Any:
    """Make what went past the caches visible to other threads before anything that follows."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[misc]
def address(typing: Any, array: Any) -> Any:
    """Address of the first element of `array`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, array, args[0], ir.Constant(_LONG, 0))
        return builder.ptrtoint(pointer, _LONG)

    return types.int64(array), generate
