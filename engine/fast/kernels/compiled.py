"""Compiles kernel launches for any GPU, present or not, and reads which resources the machine code uses.

    python -m engine.fast.kernels.compiled [80 90]     the table of every kernel's specimens

A launcher runs on CPU tensors, and its launches are caught before they happen. Each launch is then compiled for the
architecture as Triton would compile it at the first call.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

_OPTIONS = ("num_warps", "num_stages")
_TYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.bool: "i1",
}


@dataclass(frozen=True)
class Launch:
    """A caught launch: the jitted function, its arguments by name, and the options of the launch."""

    kernel: object
    arguments: dict
    options: dict


@dataclass(frozen=True)
class Usage:
    """The resources of a compiled kernel. registers: per thread. stack: bytes per thread, which hold spilled registers.
    shared: bytes of shared memory per program. registers and stack are None if the disassembler is missing."""

    kernel: str
    architecture: int
    warps: int
    stages: int
    registers: int | None
    stack: int | None
    shared: int


@contextlib.contextmanager
def caught() -> Iterator[list[Launch]]:
    """A context in which Triton launches nothing. The context's value is a list that collects the launches instead."""
    from triton.runtime.jit import JITFunction

    launches: list[Launch] = []

    def catch(self, *arguments, grid, warmup, **named):
        options = {name: named.pop(name) for name in _OPTIONS if name in named}
        names = [parameter.name for parameter in self.params]
        launches.append(Launch(self, dict(zip(names, arguments, strict=False)) | named, options))

    original, JITFunction.run = JITFunction.run, catch
    try:
        yield launches
    finally:
        JITFunction.run = original


def launches_of(call: Callable[[], object]) -> list[Launch]:
    with caught() as launches:
        call()
    return launches


def build(launch: Launch, architecture: int):
    """Compile a caught launch for sm_<architecture>; returns Triton's compiled kernel. Raises whatever the compiler
    raises."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, attributes = {}, {}, {}
    for index, parameter in enumerate(launch.kernel.params):
        value = launch.arguments[parameter.name]
        kind = "constexpr" if parameter.is_constexpr else _kind(value)
        special = not parameter.do_not_specialize
        if kind == "i32" and special and value == 1:
            kind = "constexpr"  # as Triton does with a stride of 1
        signature[parameter.name] = kind
        if kind == "constexpr":
            constants[(index,)] = value
        elif parameter.do_not_specialize_on_alignment:
            continue
        elif kind.startswith("*") or (kind == "i32" and special and value % 16 == 0):
            attributes[(index,)] = [["tt.divisibility", 16]]
    source = ASTSource(launch.kernel, signature, constants, attributes)
    target = GPUTarget("cuda", architecture, 32)
    return triton.compile(source, target=target, options=launch.options)


def _kind(value) -> str:
    if isinstance(value, torch.Tensor):
        return "*" + _TYPES[value.dtype]
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


def usage(launch: Launch, architecture: int) -> Usage:
    """Compile a caught launch, and return the registers and memory that the machine code uses."""
    kernel = build(launch, architecture)
    registers, stack = _resources(kernel.asm["cubin"])
    meta = kernel.metadata
    name = launch.kernel.__name__.strip("_")
    return Usage(name, architecture, meta.num_warps, meta.num_stages, registers, stack, meta.shared)


def _resources(cubin: bytes) -> tuple[int | None, int | None]:
    """The registers and stack bytes per thread that cuobjdump, which comes with Triton, reports; None if it is
    missing."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    if not tool.exists():
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        text = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    registers, stack = re.search(r"REG:(\d+)", text), re.search(r"STACK:(\d+)", text)
    return registers and int(registers[1]), stack and int(stack[1])


def table(rows: list[tuple[str, Usage]]) -> str:
    """A table as text, with one line per compiled specimen. rows: label and usage of each specimen."""
    lines = [f"{'specimen':34} {'kernel':22} {'sm':>3} warps stages regs stack  shared"]
    for label, used in rows:
        lines.append(
            f"{label:34} {used.kernel:22} {used.architecture:>3} {used.warps:>5} "
            f"{used.stages:>6} {used.registers or '?':>4} "
            f"{'?' if used.stack is None else used.stack:>5} {used.shared:>7}"
        )
    return "\n".join(lines)


def measure(labels: Iterable[str], architecture: int) -> list[tuple[str, Usage]]:
    """Compile the specimens with these labels for one architecture; returns the label and usage of each launch."""
    from engine.fast.kernels.hardware import KNOWN
    from engine.fast.kernels.specimens import SPECIMENS

    rows = []
    for label in labels:
        specimen = SPECIMENS[label]
        for launch in launches_of(lambda specimen=specimen: specimen(KNOWN[architecture])):
            rows.append((label, usage(launch, architecture)))
    return rows


def main(arguments: list[str]) -> int:
    from engine.fast.kernels.specimens import SPECIMENS

    for architecture in [int(name) for name in arguments] or [80, 90]:
        print(table(measure(SPECIMENS, architecture)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
