"""Archives of WebDataset: what tarfile writes, damaged ones, patterns, missing components."""

from __future__ import annotations

import io
import tarfile
import warnings

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError, HeadraceError
from headrace.operators.readers.listing import braced
from headrace.operators.readers.tar_shards import members_of, samples_of
from tests.support.fuzz import FILES, outcomes

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def archive(members, format=tarfile.USTAR_FORMAT, edit=lambda header, name: header):
    """An archive of ``name: content``; without content a folder."""
    out = io.BytesIO()
    for name, content in members.items():
        member = tarfile.TarInfo(name)
        member.size = len(content or b"")
        member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
        header = member.tobuf(format)
        out.write(header[:-512] + edit(header[-512:], name) + (content or b""))
        out.write(bytes(-out.tell() % 512))
    return out.getvalue() + bytes(1024)


def with_sum(header):
    """A header with the right check sum."""
    total = sum(header[:148]) + sum(header[156:]) + 8 * 32
    return header[:148] + b"%06o\0 " % total + header[156:]


def components(path, content, plain=False):
    """Files of an archive; `plain`: one in which the compiled scan finds the same."""
    path.write_bytes(content)
    found = [
        (c.name, c.extension, content[c.offset : c.offset + c.size])
        for sample in samples_of(str(path))
        for c in sample
    ]
    scanned = members_of(str(path))
    assert scanned is not None or not plain
    if scanned is not None:
        places = [content[begin : begin + size] for begin, size in scanned.places.tolist()]
        all_files = list(zip(scanned.names, places, strict=True))
        assert [(name, data) for name, data in all_files if not is_nameless(name)] == [
            (name, data) for name, _, data in found
        ]
    return found


def is_nameless(name):
    """True for what is no sample: nothing is before its first dot."""
    return name.startswith(".") and "/" not in name


def samples(paths, ext, **arguments):
    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        found = fn.readers.webdataset(paths=paths, ext=ext, name="reader", **arguments)
        pipe.set_outputs(*(found if isinstance(found, list) else (found,)))
    pipe.build()
    size = pipe.reader_meta("reader")["epoch_size"]
    return [tuple(bytes(np.array(out[0])) for out in pipe.run()) for _ in range(size)]


NAMES = st.text("ab./é", min_size=1, max_size=8).map(lambda text: text.strip("/.") or "x")


@given(st.dictionaries(NAMES, st.none() | st.binary(max_size=1100)), st.sampled_from(FORMATS))
def test_what_tarfile_writes(tmp_path_factory, members, format):
    long = {f"{'long/' * 30}{name}": content for name, content in members.items()}
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    for each in (members, long):
        wanted = [(name, content) for name, content in each.items() if content is not None]
        found = components(path, archive(each, format), plain=True) if each else []
        assert [(name, content) for name, _, content in found] == wanted


def test_sizes_in_base_256_and_headers_of_old_programs(tmp_path):
    def large(header, name):
        return with_sum(header[:124] + b"\x80" + len(name).to_bytes(11, "big") + header[136:])

    def old(header, name):
        return with_sum(header[:156] + b"\0" + header[157:257] + bytes(255))

    for edit in (large, old):
        members = {name: name.encode() for name in ("0.a", "0.b", "1.a")}
        found = components(tmp_path / "a.tar", archive(members, edit=edit), plain=True)
        assert [(name, content) for name, _, content in found] == list(members.items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d[:1024] + bytes([d[1024] ^ 1]) + d[1025:], "bad checksum at byte 1024"),
        (lambda d: d[:1024] + bytes(512) + d[1536:], "zeros are in place of a header at byte 1024"),
        (lambda d: d[:1200], "truncated header at byte 1024"),
        (lambda d: d[:1540], "unexpected end of data"),
        (lambda d: d[:512] + d[513:], "bad checksum at byte"),
        (
            lambda d: with_sum(d[:124] + b"\xff" * 10 + b"\xfe\0" + d[136:512]) + d[512:],
            "(a size is negative|invalid offset) at byte 0",
        ),
    ],
)
def test_an_archive_does_not_end_where_it_is_damaged(tmp_path, change, words):
    whole = archive({"0.a": b"x", "1.a": b"x", "2.a": b"x"})
    with pytest.raises(ArgumentValueError, match=words):
        components(tmp_path / "a.tar", change(whole))
    assert len(components(tmp_path / "a.tar", whole[:-1024])) == 3  # nobody needs the zeros


def test_holes_and_compression(tmp_path):
    path = tmp_path / "a.tar"

    def sparse(header, name):
        return with_sum(header[:156] + b"S" + header[157:]) if name == "0.b" else header

    path.write_bytes(archive({"0.a": b"0", "0.b": b"1"}, edit=sparse))
    assert samples(str(path), "a") == [(b"0",)]
    with pytest.raises(ArgumentValueError, match=r"'0\.b'.*a\.tar.*stored with holes"):
        samples(str(path), "b")
    for kind, name in (("gz", "gzip"), ("bz2", "bzip2"), ("xz", "xz")):
        with tarfile.open(path, f"w:{kind}") as file:
            file.addfile(tarfile.TarInfo("0.a"))
        with pytest.raises(ArgumentValueError, match=f"compressed by {name}"):
            samples(str(path), "a")
        with fsspec.open("memory://packed/a.tar", "wb") as file:
            file.write(path.read_bytes())
        with pytest.raises(ArgumentValueError, match=f"compressed by {name}"):
            samples("memory://packed/a.tar", "a")


@FILES
def test_damaged_archives(tmp_path, count):
    path = tmp_path / "shard.tar"
    content = archive({f"{k}.{ext}": f"{ext}{k}".encode() * 30 for k in range(3) for ext in "ab"})
    good = len(samples_of_bytes(content))
    errors = 0
    for mutant, found in outcomes(
        path, content, count, lambda: samples(str(path), ["a", "b"]), hot=len(content)
    ):
        errors += isinstance(found, HeadraceError)
        if isinstance(found, list):
            assert found == samples_of_bytes(mutant)
            assert len(found) == good or len(mutant) < len(content)
    assert 0 < errors < count


def samples_of_bytes(content):
    """What tarfile finds."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        for member in file:
            stem, _, extension = member.name.partition(".")
            if member.isfile() and extension in ("a", "b"):
                found.setdefault(stem, {})[extension] = file.extractfile(member).read()
    return [(each.get("a", b""), each.get("b", b"")) for each in found.values()]


@FILES
def test_damaged_index_files(tmp_path, count):
    (tmp_path / "shard.tar").write_bytes(archive({"0.a": b"0", "0.b": b"1", "1.a": b"2"}))
    index = tmp_path / "shard.idx"
    text = b"v1.2 2\na 512 1 0.a b 1536 1 0.b\na 2560 1 1.a\n"
    seen = set()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*has a component", UserWarning)
        for _, found in outcomes(
            index,
            text,
            count,
            lambda: by_index(str(tmp_path / "shard.tar"), str(index)),
        ):
            seen.add(type(found))
    assert list in seen
    assert len(seen) > 1


def by_index(path, index):
    """Samples; an error about a sample names the archive, where the index was believed."""
    try:
        return samples(path, ["a", "b"], index_paths=index)
    except RuntimeError as error:
        if "shard.tar" in str(error):
            return error
        raise


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a-{000..002}.tar", ["a-000.tar", "a-001.tar", "a-002.tar"]),
        ("{8..10}", ["8", "9", "10"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{0..6..3}", ["0", "3", "6"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{a,b}/{0..1}", ["a/0", "a/1", "b/0", "b/1"]),
        ("{a,b{1..2}}c", ["ac", "b1c", "b2c"]),
        ("x{,y}", ["x", "xy"]),
        ("{a}{b..}", ["{a}{b..}"]),
        ("{a,b", ["{a,b"]),
        ("a}{1,2}", ["a}1", "a}2"]),
        ("plain", ["plain"]),
    ],
)
def test_braces(pattern, names):
    assert braced(pattern) == names


@pytest.mark.in_threads  # files in memory are those of one process
def test_patterns_of_paths(tmp_path):
    for k in range(12):
        (tmp_path / f"s-{k:03}.tar").write_bytes(archive({f"{k}.a": b"%d" % k}))
        (tmp_path / f"s-{k:03}.idx").write_text(f"v1.1 1\na 512 {len(str(k))}\n")
        with fsspec.open(f"memory://shards/s-{k:03}.tar", "wb") as file:
            file.write(archive({f"{k}.a": b"%d" % k}))
    every = [(b"%d" % k,) for k in range(12)]
    assert samples(f"{tmp_path}/s-{{000..011}}.tar", "a") == every
    assert samples(f"{tmp_path}/*.tar", "a") == every
    assert samples(f"file://{tmp_path}/s-00?.tar", "a") == every[:10]
    assert samples(f"{tmp_path}/s-{{00[2-4],010}}.tar", "a") == [*every[2:5], every[10]]
    assert samples([f"{tmp_path}/s-01*.tar", f"{tmp_path}/s-001.tar"], "a") == [
        *every[10:],
        every[1],
    ]
    assert samples("memory://shards/s-00{3..4}.tar", "a") == every[3:5]
    assert samples("memory://shards/s-01*.tar", "a") == every[10:]
    assert samples(f"{tmp_path}/*.tar", "a", index_paths=f"{tmp_path}/s-{{000..011}}.idx") == every
    (tmp_path / "[1].tar").write_bytes(archive({"0.a": b"x"}))
    assert samples(f"{tmp_path}/[1].tar", "a") == [(b"x",)]
    found = [
        bytes(np.array(batch.tensors[0]))
        for (batch,) in ndd.readers.Webdataset(
            paths=f"{tmp_path}/s-{{000..001}}.tar", ext=["a"]
        ).next_epoch(batch_size=1)
    ]
    assert found == [b"0", b"1"]
    for name in ("none-*.tar", "none-{0..1}.tar"):
        with pytest.raises(ArgumentValueError, match="none-"):
            samples(f"{tmp_path}/{name}", "a")
    with pytest.raises(ArgumentValueError, match="1 `index_paths` for 12 `paths`"):
        samples(f"{tmp_path}/s-*.tar", "a", index_paths=f"{tmp_path}/s-000.idx")


def test_components_that_no_sample_of_an_archive_has(tmp_path):
    paths = []
    for name, exts in (("x", "ab"), ("y", "a"), ("z", "a")):
        paths.append(str(tmp_path / f"{name}.tar"))
        members = {f"{k}.{ext}": b"1" for k in range(2) for ext in exts}
        (tmp_path / f"{name}.tar").write_bytes(archive(members))
    assert len(samples(paths[0], ["a", "b"])) == 2
    for behavior, words, left in (("empty", "are empty", 6), ("skip", "are left out", 2)):
        with pytest.warns(UserWarning, match=rf"y\.tar' and 1 more.*'b'.*{words}") as caught:
            found = samples(paths, ["a", "b"], missing_component_behavior=behavior)
        assert len(caught) == 1
        assert len(found) == left
    with pytest.warns(UserWarning, match=r"x\.tar' and 2 more has a component 'jpg;png'"):
        samples(paths, ["a", "jpg;png"])
    with pytest.raises(ArgumentValueError, match=r"y\.tar.*'a', 'b' \(`ext`\)"):
        samples(paths[1], ["a", "b"], missing_component_behavior="skip")
