"""Compile kernels in a process of its own, in which CuPy may be imported.

Reads lines, ``[{"source": ..., "names": [...], "arch": ...}, ...]``, and answers each by one: what
the kernels of each need of a device, or the compiler's words. ``"architectures"`` is answered by
what ``-arch=`` can be.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from headrace.tensors.gpu.nvrtc import OPTIONS, _include_options

_WARNING = re.compile(r"^(?!Remark:).*\bwarning\b.*$", re.MULTILINE | re.IGNORECASE)
_ENTRY = re.compile(r"Compiling entry function '(\S+)'")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spilled_bytes": re.compile(r"(\d+) bytes spill stores"),
}


def compiled(source: str, names: list[str], arch: str) -> dict[str, Any]:
    """``{"needs": {name: ...}}``, or ``{"error": ...}``; warnings are errors."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "program.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (f"-arch={arch}", *OPTIONS, *_include_options())
        if arch.startswith("sm_"):  # others are for no device yet
            options += ("-Xptxas=-v",)
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            log = nvrtc.getProgramLog(program)
            return {"error": f"{names} do not compile for {arch}:\n{log}"}
        log = nvrtc.getProgramLog(program)
        if _WARNING.search(log):
            return {"error": f"{names}, for {arch}, compile with warnings:\n{log}"}
        symbols = {name: nvrtc.getLoweredName(program, name) for name in names}
    finally:
        nvrtc.destroyProgram(program)
    needs = _needs(log)
    return {
        "needs": {
            name: needs.get(symbol.decode() if isinstance(symbol, bytes) else symbol, {})
            for name, symbol in symbols.items()
        }
    }


def _needs(log: str) -> dict[str, dict[str, int]]:
    """By symbol."""
    parts = _ENTRY.split(log)
    found = {}
    for symbol, text in zip(parts[1::2], parts[2::2], strict=True):
        matches = {key: pattern.search(text) for key, pattern in _NUMBERS.items()}
        found[symbol] = {key: int(m[1]) if m else 0 for key, m in matches.items()}
    return found


def architectures() -> list[str]:
    """What the compiler knows, ``"sm_90"``."""
    from cupy.cuda import nvrtc

    return [f"sm_{number}" for number in nvrtc.getSupportedArchs()]


def _main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request == "architectures":
            answer: list[Any] = architectures()
        else:
            answer = [compiled(**job) for job in request]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main()
