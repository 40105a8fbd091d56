"""Options of `opgen build` about device code: for which chips, with which precision, how checked."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

__all__ = ["DeviceOptions", "device_options"]

_DEFAULT_MUSA = ("31",)
"""What the stand-ins behave like, too (MUSA_ARCH)."""


@dataclass(frozen=True)
class DeviceOptions:
    """What the options say. Architectures are numbers: 31 for mp_31, 90 for sm_90."""

    architectures: tuple[str, ...] = ()
    fp64: bool = False
    asan: bool = False

    def check(self, target: str) -> None:
        """Refuses what the target has no use for. Raises click.UsageError."""
        if target == "host" and self.architectures:
            raise click.UsageError(
                "--arch is for the targets cuda and musa; on the host MUSA_ARCH=mp_22 chooses the chip, when a program "
                "runs"
            )
        if target != "musa" and self.fp64:
            raise click.UsageError(
                "--fp64 is for the target musa; the stand-ins take TORCH_MUSA_HOST_FP64=0 or 1 when a program runs"
            )

    def cmake_arguments(self, target: str, toolkit: Path | None) -> list[str]:
        """Definitions for CMake; none for what is the default."""
        arguments = []
        if target == "cuda":
            arguments += [
                f"-DCMAKE_CUDA_COMPILER={toolkit}",
                f"-DCMAKE_CUDA_ARCHITECTURES={';'.join(self.architectures) or 'native'}",
            ]
        if target == "musa":
            arguments += [
                f"-DMUSA_HOME={toolkit}",
                f"-DOPGEN_MUSA_ARCH={';'.join(self.architectures or _DEFAULT_MUSA)}",
                f"-DOPGEN_FP64={'ON' if self.fp64 else 'OFF'}",
            ]
        if self.asan:
            arguments.append("-DOPGEN_ASAN=ON")
        return arguments


class _Architectures(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """`31`, `mp_31`, `21;22;31`: as MUSA_ARCH is written; `90`, `sm_90` for CUDA."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        words = re.findall(r"[^;, ]+", value)
        numbers = [re.sub(r"^(mp|sm)_?", "", word) for word in words]
        wrong = next((word for word, number in zip(words, numbers, strict=True) if not number.isdigit()), None)
        if wrong is not None or not words:
            self.fail(f"{wrong or value!r} is no architecture; write 31, mp_31, or a list such as 21;22;31", param, ctx)
        return tuple(dict.fromkeys(numbers))


def device_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets them as one argument, `device`."""

    @click.option(
        "--arch",
        "architectures",
        type=_Architectures(),
        default=(),
        help='Chips to compile kernels for: "21;22;31" (musa; default 31), "90" (cuda; default: those that are here).',
    )
    @click.option("--fp64", is_flag=True, help="musa: double precision in kernels on every chip (ENABLE_COMPILE_FP64).")
    @click.option(
        "--asan",
        is_flag=True,
        help="AddressSanitizer in host code; run with LD_PRELOAD=$(g++ -print-file-name=libasan.so).",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, architectures: tuple[str, ...], fp64: bool, asan: bool, **kwargs: Any) -> Any:
        return function(*args, device=DeviceOptions(architectures, fp64, asan), **kwargs)

    return wrapper
