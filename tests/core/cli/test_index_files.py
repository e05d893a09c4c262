"""The commands that write index files for readers."""

from __future__ import annotations

import io
import struct
import sys
import tarfile

import pytest

from headrace.cli import index_files
from tests.support.record_io import part
from tests.support.tf_records import frame


def run(monkeypatch, command, *arguments):
    monkeypatch.setattr(sys, "argv", [command.__name__, *map(str, arguments)])
    command()


def test_tfrecord(monkeypatch, tmp_path):
    data, index = tmp_path / "data", tmp_path / "index"
    records = [b"x" * 5, b"", b"y" * 300]
    data.write_bytes(b"".join(struct.pack("<QI", len(r), 0) + r + b"...." for r in records))
    run(monkeypatch, index_files.tfrecord, data, index)
    assert index.read_text() == "0 21\n21 16\n37 316\n"
    data.write_bytes(b"".join(map(frame, records)))
    run(monkeypatch, index_files.tfrecord, data, index)
    assert index.read_text() == "0 21\n21 16\n37 316\n"


def test_recordio(monkeypatch, tmp_path):
    """A record of three parts has one line."""
    data, index = tmp_path / "data", tmp_path / "index"
    parts = [(0, b"12345"), (1, b"ab"), (2, b""), (3, b"c"), (0, b"12345678")]
    data.write_bytes(b"".join(part(*each) for each in parts))
    run(monkeypatch, index_files.recordio, data, index)
    assert index.read_text() == "0\t0\n1\t16\n2\t48\n"


def test_webdataset(monkeypatch, tmp_path):
    with tarfile.open(tmp_path / "data.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, size in (("a.jpg", 3), ("a.cls", 1), ("b.jpg", 600), ("README", 1)):
            member = tarfile.TarInfo(name)
            member.size = size
            archive.addfile(member, io.BytesIO(b"z" * size))
    run(monkeypatch, index_files.webdataset, tmp_path / "data.tar")
    assert (tmp_path / "data.idx").read_text() == (
        "v1.2 2\njpg 512 3 a.jpg cls 1536 1 a.cls\njpg 2560 600 b.jpg\n"
    )


@pytest.mark.parametrize(
    ("command", "content", "words"),
    [
        (index_files.tfrecord, struct.pack("<QI", 99, 0), "goes beyond the file's end"),
        (index_files.tfrecord, b"abc", "ends within the record at byte 0"),
        (index_files.tfrecord, b"\1" + frame(b"abcd")[1:] + b"x" * 99, "at byte 0 is damaged"),
        (index_files.recordio, b"12345678", "no magic number of RecordIO at byte 0"),
        (
            index_files.recordio,
            part(0, b"a") + part(2, b"b"),
            "kind 2 at byte 12, where one of (0, 1)",
        ),
        (
            index_files.recordio,
            part(1, b"a") + part(0, b"b"),
            "kind 0 at byte 12, where one of (2, 3)",
        ),
        (index_files.recordio, part(0, b"abcde")[:-4], "at byte 0 goes beyond the file's end"),
        (index_files.recordio, part(1, b"abcde"), "ends within a record"),
        (index_files.webdataset, b"no archive" * 100, "cannot be read"),
        (index_files.recordio, None, "No such file"),
    ],
)
def test_what_cannot_be_indexed(monkeypatch, tmp_path, capsys, command, content, words):
    if content is not None:
        (tmp_path / "data").write_bytes(content)
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, command, tmp_path / "data", tmp_path / "index")
    assert end.value.code == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "index").exists()
