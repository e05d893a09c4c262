"""Classes of the library protobuf for messages of TensorFlow, Caffe and Caffe2, and random ones."""

from __future__ import annotations

import random
import struct
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.support.caffe_records import varint

_FIELD = descriptor_pb2.FieldDescriptorProto
_EXAMPLE = {
    "BytesList": "repeated bytes value 1",
    "FloatList": "repeated float value 1",
    "Int64List": "repeated int64 value 1",
    "Feature": "oneof BytesList bytes_list 1, oneof FloatList float_list 2, "
    "oneof Int64List int64_list 3",
    "Features": "map Feature feature 1",
    "FeatureList": "repeated Feature feature 1",
    "FeatureLists": "map FeatureList feature_list 1",
    "Example": "optional Features features 1",
    "SequenceExample": "optional Features context 1, optional FeatureLists feature_lists 2",
    # The same bytes as `Example`, without rules for names.
    "Entry": "optional bytes key 1, optional Feature value 2",
    "Entries": "repeated Entry entry 1",
    "PlainExample": "optional Entries features 1",
}
_CAFFE = {
    "Datum": "optional int32 channels 1, optional int32 height 2, optional int32 width 3, "
    "optional bytes data 4, optional int32 label 5, repeated float float_data 6, "
    "optional bool encoded 7",
    "TensorProto": "repeated int64 dims 1, optional int32 data_type 2, repeated float floats 3, "
    "repeated int32 ints 4, optional bytes byte_data 5, repeated bytes strings 6, "
    "repeated double doubles 9, repeated int64 longs 10",
    "TensorProtos": "repeated TensorProto protos 1",
}


def _classes(syntax: str, messages: dict[str, str]) -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{syntax}.proto", package="t", syntax=syntax)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            label, kind, field, number = text.split()
            if label == "map":
                entry = message.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                _add(entry, "optional", "string", "key", 1)
                _add(entry, "optional", kind, "value", 2)
                label, kind = "repeated", f"{name}.{entry.name}"
            if label == "oneof" and not message.oneof_decl:
                message.oneof_decl.add(name="kind")
            _add(message, label, kind, field, int(number))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"t.{name}")) for name in messages}


def _add(message: Any, label: str, kind: str, name: str, number: int) -> None:
    added = message.field.add(name=name, number=number)
    added.label = _FIELD.LABEL_REPEATED if label == "repeated" else _FIELD.LABEL_OPTIONAL
    if label == "oneof":
        added.oneof_index = 0
    if kind[0].isupper():
        added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".t.{kind}"
    else:
        added.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


MESSAGES = _classes("proto3", _EXAMPLE) | _classes("proto2", _CAFFE)
"""By name: the class of a message."""


class RandomWire:
    """Random bytes that are valid messages, in every way that the format allows.

    Numbers are longer than they need be, lists packed and not, fields come in any order and in
    several pieces, between others that nobody knows, of every kind.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, most: int = 3) -> range:
        return range(self.random.randint(0, most))

    def number(self, value: int, longest: int = 10) -> bytes:
        data = varint(value)
        more = self.random.choice([0, 0, 0, 0, self.random.randint(0, longest - len(data))])
        return (
            data if not more else data[:-1] + bytes([data[-1] | 128]) + b"\x80" * (more - 1) + b"\0"
        )

    def field(self, number: int, kind: int, content: bytes) -> bytes:
        size = self.number(len(content), 5) if kind == 2 else b""
        return self.number(number << 3 | kind, 5) + size + content

    def message(self, number: int, content: bytes) -> bytes:
        return self.field(number, 2, content)

    def integer(self) -> int:
        return self.random.choice([0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63)])

    def unknown(self, known: tuple[int, ...], depth: int = 0) -> bytes:
        """A field that nobody knows: of another number, or of the number but another kind."""
        number = self.random.choice([4, 8, 15, 16, 99, 2047, 2**29 - 1])
        kind = self.random.choice([0, 1, 2, 3, 5])
        if number in known or self.random.random() < 0.2:
            number, kind = self.random.choice(known), self.random.choice([1, 3])
        if kind == 3:
            inside = (
                b"" if depth > 3 else b"".join(self.unknown((1,), depth + 1) for _ in self.some())
            )
            return self.field(number, 3, inside) + self.number(number << 3 | 4, 5)
        content = {
            0: lambda: self.number(self.integer()),
            1: lambda: self.random.randbytes(8),
            2: lambda: self.random.randbytes(self.random.randint(0, 20)),
            5: lambda: self.random.randbytes(4),
        }[kind]()
        return self.field(number, kind, content)

    def mixed(self, known: tuple[int, ...], parts: list[bytes]) -> bytes:
        """Fields, with others between them."""
        parts = [*parts, *(self.unknown(known) for _ in self.some(2))]
        self.random.shuffle(parts)
        return b"".join(parts)

    def numbers(self, number: int, integers: bool) -> list[bytes]:
        """Pieces of a list of numbers."""
        one, kind = (
            (lambda: self.number(self.integer()), 0)
            if integers
            else (lambda: struct.pack("<f", self.random.uniform(-9, 9)), 5)
        )
        return [
            self.field(number, kind, one())
            if self.random.random() < 0.5
            else self.message(number, b"".join(one() for _ in self.some()))
            for _ in self.some()
        ]

    def example(self, names: list[bytes]) -> bytes:
        pieces = [self.message(1, self.features(names)) for _ in self.some(2)]
        return self.mixed((1,), pieces)

    def features(self, names: list[bytes]) -> bytes:
        return self.mixed((1,), [self.message(1, self.entry(names)) for _ in self.some(5)])

    def entry(self, names: list[bytes]) -> bytes:
        keys = [self.message(1, self.random.choice(names)) for _ in self.some(2)]
        return self.mixed((1, 2), [*keys, *(self.message(2, self.feature()) for _ in self.some(2))])

    def feature(self) -> bytes:
        return self.mixed((1, 2, 3), [self.list_of_some_kind() for _ in self.some()])

    def list_of_some_kind(self) -> bytes:
        kind = self.random.choice([1, 2, 3])
        if kind == 1:
            values = [self.message(1, self.random.randbytes(3)) for _ in self.some()]
        else:
            values = self.numbers(1, kind == 3)
        return self.message(kind, self.mixed((1,), values))

    def datum(self) -> bytes:
        integers = [self.field(n, 0, self.number(self.integer())) for n in (1, 2, 3, 5, 7)]
        integers = [each for each in integers for _ in self.some(1)]
        data = [self.message(4, self.random.randbytes(5)) for _ in self.some(2)]
        return self.mixed((4,), [*integers, *data, *self.numbers(6, False)])

    def tensors(self) -> bytes:
        return self.mixed((1,), [self.message(1, self.tensor()) for _ in self.some()])

    def tensor(self) -> bytes:
        parts = [
            *self.numbers(1, True),
            *(self.field(2, 0, self.number(self.random.choice([1, 2, 3, 4, 10]))) for _ in "ab"),
            *self.numbers(3, False),
            *self.numbers(4, True),
            *(self.message(n, self.random.randbytes(3)) for n in (5, 6) for _ in self.some(2)),
            *self.numbers(10, True),
        ]
        return self.mixed((1, 2, 3, 4, 5, 6, 10), parts)
