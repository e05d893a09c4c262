"""The table of cases leaves no operator out."""

from __future__ import annotations

from collections import Counter

from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas
from tests.cases.reading import HAS_VIDEO, VIDEO
from tests.cases.table import all_cases


def test_every_operator_has_a_case_wherever_it_runs():
    on = {device: set() for device in ("cpu", "gpu")}
    for case in all_cases():
        for device in case.devices:
            on[device].add(case.name)
    on["cpu"].add("experimental.inputs.video")  # fed while it runs: tests/parity/test_video.py
    on["gpu"].add("experimental.inputs.video")
    if not HAS_VIDEO:
        for names in on.values():
            names |= {case.name for case in VIDEO}
    on["gpu"].add("dl_tensor_python_function")  # takes no memory of the emulated GPU for one
    on["gpu"].add("optical_flow")  # warns there: tests/gpu/operators has it
    on["gpu"].add("_described_frames")  # of readers: tests/gpu/operators/test_hardware_video.py
    on["gpu"].add("_validate_merge")  # tests/gpu/test_conditionals.py has it
    on["cpu"] |= {"cache", "_cache.store", "_cache.load"}  # tests/property/test_cache.py
    on["gpu"].add("cache")  # tests/gpu/test_caches.py
    # Libraries that need not be there: tests/core/operators/readers/test_columns.py.
    on["cpu"] |= {f"readers.{kind}" for kind in ("parquet", "arrow", "hf_dataset", "lance", "hdf5")}
    on["cpu"] |= {f"_mix.{part}" for part in ("regions", "boxes", "soft")}  # of mixup and others
    on["gpu"].add("_mix.soft")
    on["cpu"].add("_of_first")  # of `_random_state`: tests/parity/test_random_state.py
    for names in on.values():  # tests/property/test_mix.py, test_packing.py, tests/gpu
        names |= {"readers.mix", "readers.pack"}
    on["cpu"] |= {"decoders.text", "decoders.json"}  # tests/core/pipeline/test_side_data.py
    # Others are declared by tests, or are old names.
    schemas = [s for s in all_schemas() if s.name in OPERATORS and not s.deprecated]
    assert [s.name for s in schemas if s.name not in on["cpu"] | on["gpu"]] == []
    assert [s.name for s in schemas if s.cls.has_cpu() and s.name not in on["cpu"]] == []
    with_gpu = [s for s in schemas if s.cls.has_gpu() and s.devices != ("cpu",)]
    assert [s.name for s in with_gpu if s.name not in on["gpu"]] == []


def test_cases_are_told_apart():
    repeated = [key for key, count in Counter(c.key for c in all_cases()).items() if count > 1]
    assert repeated == []
