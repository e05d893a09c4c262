"""The commands, by typer's runner; and once as a program of its own."""

import json
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET

import cv2
import pytest
from typer.testing import CliRunner

from headrace import Pipeline, fn
from headrace.cli import doctor
from headrace.cli.app import app
from headrace.operators.readers.file_cache import file_cache
from tests.support.scripts import imports_forgotten

SCRIPT = """
import warnings
import numpy as np
from headrace import fn, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=1, seed=1)
def images(side=24, scale=1.0):
    pixels = fn.random.uniform(range=(0, 255), shape=(32, 40, 3), dtype=types.UINT8, name="noise")
    small = fn.resize(pixels, size=(side, side))
    return small, (small * scale + 3) / 2

@pipeline_def(batch_size=4, num_threads=1)
def ends():
    return fn.external_source([[np.zeros(3)] * 4] * 3, cycle="raise", name="three")

@pipeline_def(batch_size=4, num_threads=1)
def sounds():
    waves = fn.random.normal(shape=(4000,))
    return fn.spectrogram(waves, nfft=512)

@pipeline_def(batch_size=4, num_threads=1, device_id=0)
def on_gpu(root="/nowhere"):
    jpegs, _ = fn.readers.file(file_root=root)
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=8)

@pipeline_def(batch_size=4, num_threads=1, device_id=0)
def warned():
    warnings.warn("careful")
    return fn.random.uniform()
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in a folder with a script; returns what it has printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_script.py").write_text(SCRIPT)

    def invoke(*arguments, code=0):
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    with imports_forgotten(monkeypatch):
        yield invoke


def test_show_draws_a_batch(run, tmp_path):
    assert "Wrote batch.png: batch 1, 2 outputs." in run("show", "cli_script.py:images")
    assert cv2.imread(str(tmp_path / "batch.png")).shape[1] > 4 * 24
    run("show", "cli_script.py:sounds", "--out", "sounds.png", "--batch", "2", "--samples", "1")
    assert cv2.imread(str(tmp_path / "sounds.png")) is not None


def test_graph_draws_operators_stages_and_devices(run, tmp_path, monkeypatch):
    assert "5 operators in 1 stage." in run("graph", "cli_script.py:images", "-o", "a.svg")
    text = (tmp_path / "a.svg").read_text()
    root = ET.fromstring(text)
    said = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"fn.resize", "fn.random.uniform", "output 0", "output 1"} <= set(said)
    assert '"noise" · cli_script.py:8' in said
    assert said.count("merged, group 1") == 3
    # Programs that draw SVG know colours, and hardly anything else of CSS.
    assert "var(" not in text
    assert "paint-order" not in text
    assert text.count("#d6e6fb") == 1
    run("graph", "cli_script.py:images", "-o", "a.png")
    pixels = cv2.imread(str(tmp_path / "a.png"))[..., ::-1]
    assert pixels.shape[:2] == tuple(2 * int(root.get(name)) for name in ("height", "width"))
    colors = {tuple(color) for color in pixels.reshape(-1, 3).tolist()}
    assert {(0xD6, 0xE6, 0xFB), (0xB0, 0x46, 0x8F), (0x1D, 0x24, 0x30)} <= colors
    assert "has to end in .png" in run(*("graph", "cli_script.py:images", "-o", "a.pdf"), code=1)
    # Neither data nor a GPU is needed.
    run("graph", "cli_script.py:on_gpu", "-o", "b.svg")
    kinds = [e.get("class") for e in ET.parse(tmp_path / "b.svg").getroot().iter()]
    assert [kinds.count(k) for k in ("cpu", "mixed", "gpu", "output")] == [1, 1, 1, 1]
    # As the graph would run: here all of it on the CPU.
    monkeypatch.setenv("HEADRACE_GPU", "never")
    monkeypatch.setattr("headrace.executor.fallback._told", True)
    run("graph", "cli_script.py:on_gpu", "-o", "c.svg")
    kinds = [e.get("class") for e in ET.parse(tmp_path / "c.svg").getroot().iter()]
    assert [kinds.count(k) for k in ("cpu", "mixed", "gpu", "output")] == [3, 0, 0, 1]


def test_bench_measures_and_compares(run):
    said = run("bench", "cli_script.py:images", "--batches", "3", "--rounds", "2")
    assert "samples/s" in said
    assert "as it is" in said
    said = run(
        *("bench", "cli_script.py:images", "--batches", "3", "--rounds", "2"),
        *("--threads", "1", "--against", "2"),
    )
    assert re.search(r"num_threads=1 is [\d.]+ times as fast as num_threads=2", said)
    said = run(
        *("bench", "cli_script.py:images", "--batches", "3", "--rounds", "1"),
        *("--set", "side=8", "--against", "side=16"),
    )
    assert re.search(r"side=8 is [\d.]+ times as fast as side=16", said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "3"), "another value of what?"),
        (("--threads", "2", "--against", "many"), "expected a number of threads"),
        (("--set", "size"), "is no setting"),
        (("--set", "sides=3"), "unexpected argument `sides`"),
    ],
)
def test_bench_says_what_it_cannot_do(run, arguments, message):
    code = 1 if "sides" in message else 2
    assert message in run("bench", "cli_script.py:images", *arguments, code=code)


def test_epochs_follow_one_another(run):
    assert "samples/s" in run("bench", "cli_script.py:ends", "--batches", "7", "--rounds", "1")


def test_profile_writes_a_page_and_a_timeline(run, tmp_path):
    said = run("profile", "cli_script.py:images", "--batches", "8", "--out", "mine.html")
    assert "samples/s; the consumer waited for" in said
    assert "Wrote" in said
    assert "fn.resize" in (tmp_path / "mine.html").read_text()
    events = json.loads((tmp_path / "mine.trace.json").read_text())["traceEvents"]
    assert any(e["name"] == "fn.resize" for e in events)
    assert "expected a path that ends in .html" in run(
        *("profile", "cli_script.py:images", "--out", "mine.txt"), code=1
    )


def test_warm_leaves_nothing_to_compile(run):
    run("warm", "cli_script.py:images")
    assert "Nothing was left to compile" in run("warm", "cli_script.py:images")


def test_doctor_says_what_there_is(run):
    said = run("doctor")
    for part in ("Headrace", "numba", "GPUs", "nvImageCodec", "HEADRACE_WORKERS", "What to do"):
        assert part in said


def test_files_that_are_deleted_meanwhile_are_not_counted(tmp_path):
    kept, deleted = tmp_path / "kept", tmp_path / "deleted"
    kept.write_bytes(b"12345")

    class Deleted(type(deleted)):
        def is_file(self):  # it was there when it was asked for
            return True

    assert doctor.file_sizes([kept, Deleted(deleted), tmp_path]) == (1, 5)


def test_doctor_says_what_to_install(monkeypatch, tmp_path):
    there = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda n: "" if n in ("fsspec", "scipy") else there(n))
    monkeypatch.setattr(doctor, "_can_write", lambda _: False)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "one").write_bytes(b"x" * 2_000_000)
    found = doctor.examine()
    to_do = "\n".join(found.to_do)
    assert "pip install 'headrace[remote]'" in to_do
    assert "pip install scipy" in to_do
    assert "HEADRACE_CACHE_DIR" in to_do
    cache = found.sections["Caches"][0]
    assert cache.value == "1 files, 2.0 MB; read-only"
    assert cache.is_good is False


def test_doctor_finds_variables_that_are_wrong(monkeypatch):
    for name, value in {
        "HEADRACE_GPU": "always",
        "HEADRACE_DECODER": "opencv",
        "HEADRACE_AFFINITY_MASK": "0,x",
        "DALI_AFFINITY_MASK": "0",
        "DALI_BUFFER_GROWTH_FACTOR": "9",
        "DALI_HOST_BUFFER_SHRINK_THRESHOLD": "0.25",
        "DALI_USE_VMM": "1",
        "DALI_NUM_THREADS": "3",
    }.items():
        monkeypatch.setenv(name, value)
    found = doctor.examine()
    lines = {line.name: line for line in found.sections["Environment"]}
    wrong = {
        "HEADRACE_GPU": "allowed are auto, never",
        "HEADRACE_AFFINITY_MASK": "'x' is not the number",
        "DALI_BUFFER_GROWTH_FACTOR": "numbers from 1 to 4. 4 is used",
        "DALI_USE_VMM": "Unset DALI_USE_VMM",
    }
    assert {name for name, line in lines.items() if line.is_good is False} == set(wrong)
    for name, words in wrong.items():
        assert sum(words in advice and name in advice for advice in found.to_do) == 1
    assert lines["DALI_HOST_BUFFER_SHRINK_THRESHOLD"].value == "0.25"
    assert lines["DALI_NUM_THREADS"].value == "3"
    assert lines["DALI_HOST_BUFFER_GROWTH_FACTOR"].value == "not set: 1.1"
    assert not found.sections["GPUs"][-1].is_good


def test_warnings_are_lines(run, gpu_is_off):
    """One that a script causes names its place, one that the library has for it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        said = run("graph", "cli_script.py:warned")
    assert "warning: `device_id`=0 asks for a GPU, and the CPU does the work" in said
    assert re.search(r"warning: careful \(\S*cli_script.py:\d+\)", said)
    assert "typer" not in said


def test_as_a_program(run, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "show", "cli_script.py:nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: There is no `nothing` in cli_script.py.")
    assert len(done.stderr.splitlines()) == 1


def test_without_its_libraries_it_names_the_extra(tmp_path):
    program = (
        "import sys; sys.modules['typer'] = None; from headrace.cli.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "The command line of Headrace needs the library `typer`, which is not installed. Run "
        "`pip install 'headrace[cli]'`.\n"
    )


@pytest.mark.usefixtures("roomy_caches")
def test_cache(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_RAM_CACHE", str(tmp_path / "memory"))
    folder = tmp_path / "kept"
    folder.mkdir()
    assert "Nothing is kept." in run("cache", "info", str(tmp_path))
    (tmp_path / "a.bin").write_bytes(bytes(1000))
    pipe = Pipeline(2, num_threads=1, device_id=None)
    with pipe:
        content = fn.readers.file(files=[str(tmp_path / "a.bin")])[0]
        pipe.set_outputs(fn.cache(content, where=str(folder)), fn.cache(content[:9]))
    while "1 samples" not in run("cache", "info", str(folder)):
        pipe.run()  # until the file is old enough to be kept: a fiftieth of a second
    assert re.search(r"kept/[0-9a-f]+ 1 samples 0\.0", run("cache", "info", str(folder)))
    assert "1 samples" in run("cache", "info")
    assert "Removed 0.0 MB" in run("cache", "clear", str(folder))
    assert "Nothing" in run("cache", "info", str(folder))
    run("cache", "clear")
    assert "Nothing" in run("cache", "info")
    assert "no directory" in run("cache", "info", "nowhere", code=2)
    pipe.run()
    monkeypatch.setenv("HEADRACE_FILE_CACHE", str(tmp_path / "remote"))
    (tmp_path / "remote").mkdir()
    file_cache().put(("memory://a", 0, -1), (1, 2, 3), b"abc")
    assert "remote 1 files 0.0" in run("cache", "info")
    run("cache", "clear")
    assert "remote 0 files 0.0" in run("cache", "info")
