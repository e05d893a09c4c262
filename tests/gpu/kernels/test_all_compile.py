"""Every kernel of the package compiles for every generation of GPUs, without warnings.

``expressions.txt`` has one instantiation of each kernel of each program. ``hatch run test:gpu``
compiles what else tests use, at the end of their modules. ``hatch run cuda12-oldest:run`` and
``cuda13-oldest:run`` do this with the oldest compilers that are supported. To renew the list, run
all tests below ``tests/gpu`` and then ``python -m tests.support.gpu.recording``.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from headrace.kernels.gpu.program import program
from tests.support.gpu import nvrtc
from tests.support.gpu.cpu_functions import function_of
from tests.support.gpu.recording import SOURCES, kernels_in, listed, parts_of

GENERATED = {"pointwise_loop.cuh", "color_loop.cuh"}
"""Files whose kernels are parts of programs that are written at run time; tests that compute terms
compile those.
"""


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing runs here."""


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    missing = nvrtc.missing()
    if missing:
        pytest.skip(missing)


@pytest.mark.parametrize("arch", nvrtc.EACH_ARCHITECTURE)
def test_listed_kernels_compile(arch: str) -> None:
    if arch not in nvrtc.known_architectures():
        pytest.skip(f"this compiler is older than {arch}")
    nvrtc.check_compiles([(program(file), name) for file, name in listed()], arch)


def test_every_kernel_is_listed() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for file, name in listed():
        for part in parts_of(file):
            used[part].add(function_of(name))
    missing = {
        path.name: sorted(unused)
        for path in SOURCES.glob("*.cu*")
        if path.name not in GENERATED
        and (unused := kernels_in(path.read_text(encoding="utf-8")) - used[path.name])
    }
    assert not missing, (
        f"{missing}: no test uses them, or the list is old; run the tests below tests/gpu, then "
        "`python -m tests.support.gpu.recording`"
    )


def test_the_list_has_nothing_that_is_gone() -> None:
    for file, name in listed():
        assert function_of(name) in kernels_in(program(file)), (file, name)
