"""mcc on CUDA: compiles `.mu` with nvcc.

    python sdk/cuda/mcc [flags] -c kernel.mu -o kernel.o
    python sdk/cuda/mcc [flags] kernel.mu -o program -L build/cuda-torch<VERSION>/lib -lmusart

The dialect is nvcc's own; a header in front of the source gives MUSA's names to what CUDA calls otherwise. Flags that
nvcc does not know (-fPIC, -Wall, -g1 ...) go on to the host compiler; `--offload-arch=mp_..` is left out.

`$NVCC` names nvcc (default: that of $CUDA_HOME, else the one on PATH, else of /usr/local/cuda). `$MUSA_CUDA_ARCH` names
the card's architecture (90 for an H200; default: the cards in this machine). Exit code: nvcc's, 2 for a wrong call.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SDK = Path(__file__).resolve().parents[2]
FLAGS = ("-std=c++20", "-O2", "--extended-lambda", "--expt-relaxed-constexpr", "-cudart", "shared")
_VALUE = ("-o", "-I", "-L", "-D", "-U", "-include", "-isystem", "-x", "-std", "-MF", "-MT")
_NVCC = ("-o", "-c", "-I", "-L", "-l", "-D", "-U", "-O", "-std", "-shared", "-E", "-M", "-include", "-isystem", "--")
"""Beginnings of flags that nvcc takes as they are."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        return 0
    sources = [argument for argument in arguments if argument.endswith(".mu")]
    if len(sources) != 1:
        print(f"mcc: error: one .mu file is needed, {len(sources)} given", file=sys.stderr)
        return 2
    nvcc = find_nvcc()
    if nvcc is None:
        print("mcc: error: no nvcc: set CUDA_HOME to the CUDA toolkit, or NVCC to its compiler", file=sys.stderr)
        return 2
    try:
        return subprocess.call(command(nvcc, arguments))
    except OSError as error:
        print(f"mcc: error: {nvcc}: {error.strerror}", file=sys.stderr)
        return 2


def find_nvcc() -> str | None:
    """The compiler, by the rules above."""
    if os.environ.get("NVCC"):
        return os.environ["NVCC"]
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return str(Path(home) / "bin" / "nvcc")
    usual = Path("/usr/local/cuda/bin/nvcc")
    return shutil.which("nvcc") or (str(usual) if usual.is_file() else None)


def command(nvcc: str, arguments: Sequence[str]) -> list[str]:
    """nvcc's command line for mcc's."""
    arch = os.environ.get("MUSA_CUDA_ARCH", "native")
    arch = arch if arch == "native" or arch.startswith("sm_") else f"sm_{arch}"
    header = SDK / "cuda" / "include" / "musa_kernel_cuda.h"
    includes = [f"-I{SDK / 'cuda' / 'include'}", f"-I{SDK / 'include'}"]
    # nvcc warns of a level given twice, also of the same one; it is told the last alone, which it would take.
    levels = [at for at, word in enumerate(arguments) if word.startswith("-O") and arguments[at - 1] not in _VALUE]
    flags = [word for word in FLAGS if not levels or word != "-O2"]
    given = [word for at, word in enumerate(arguments) if at not in levels[:-1]]
    return [nvcc, "-x", "cu", f"-arch={arch}", *flags, "-include", str(header), *_translated(given), *includes]


def _translated(arguments: Sequence[str]) -> list[str]:
    result: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "-o":
            result += [word, _for_a_shell(next(words, ""))]
        elif word in _VALUE:
            result += [word, next(words, "")]
        elif word.startswith(("--offload-arch", "--cuda-gpu-arch", "-mtgpu")):
            continue
        elif word.startswith("-Wl,"):
            result += ["-Xlinker", word.removeprefix("-Wl,")]
        elif word.startswith("-") and not word.startswith(_NVCC):
            result += ["-Xcompiler", word]
        else:
            result.append(word if word.startswith("-") else _for_a_shell(word))
    return result


def _for_a_shell(path: str) -> str:
    """nvcc hands its paths to a shell, between quotation marks where `$` and a backtick still mean something."""
    return re.sub(r"([$`])", r"\\\1", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
