"""mcc for the host: compiles `.mu` with the C++ compiler of the machine.

    mcc --translate kernel.mu -o kernel.mu.cpp [--presumed kernel.cu]      (a .muh header likewise)
    mcc [flags of the C++ compiler] -c kernel.mu -o kernel.o

A kernel launch is the one piece of MUSA's dialect that is not C++; launches.py rewrites it. Everything else
(`__global__`, `threadIdx`, `dim3`) is declared by `musa_kernel_host.h`, which the result includes. No line moves, so
the compiler's messages name the line of the `.mu` (or of the file given as --presumed).

`$CXX` names the compiler (default `g++`). Exit code: 1 for a fault in the source, else the compiler's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from launches import SourceError, rewrite_launches

HEADER = "musa_kernel_host.h"
MACRO = "__MUSACC__"  # what the real compiler defines, and HEADER looks for
USAGE = "usage: mcc --translate FILE.mu -o FILE.cpp [--presumed NAME] | mcc [compiler flags] -c FILE.mu -o FILE.o"


def translate(source: str, name: str) -> str:
    """The C++ text of the MUSA source text `source`; `name` is what messages call it."""
    body = rewrite_launches(source, name)
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#define {MACRO} 1\n#include "{HEADER}"\n#line 1 "{quoted}"\n{body}'


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        return 0
    try:
        if arguments[0] == "--translate":
            return _translate_command(arguments[1:])
        return _compile_command(arguments)
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    except UnicodeDecodeError as error:
        print(f"mcc: error: not UTF-8 text: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"mcc: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1


def _translate_command(arguments: list[str]) -> int:
    rest = list(arguments)
    options = {"-o": "", "--presumed": ""}
    for option in options:
        if option in rest:
            at = rest.index(option)
            if at + 1 == len(rest):
                return _usage(f"{option} needs a value")
            options[option] = rest[at + 1]
            del rest[at : at + 2]
    if len(rest) != 1 or not options["-o"]:
        return _usage("one input and -o OUTPUT are needed")
    text = translate(Path(rest[0]).read_text(encoding="utf-8"), options["--presumed"] or rest[0])
    target = Path(options["-o"])
    # An unchanged file keeps its time, so that a build step recompiles nothing for it.
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


def _compile_command(arguments: list[str]) -> int:
    sources = [argument for argument in arguments if argument.endswith(".mu")]
    if len(sources) != 1:
        return _usage(f"one .mu file is needed, {len(sources)} given")
    source = sources[0]
    text = translate(Path(source).read_text(encoding="utf-8"), source)
    sdk_include = Path(__file__).resolve().parents[2] / "include"
    with tempfile.TemporaryDirectory(prefix="mcc-") as folder:
        translated = Path(folder) / (Path(source).name + ".cpp")
        translated.write_text(text, encoding="utf-8")
        flags = [str(translated) if argument == source else argument for argument in arguments]
        # The source's own folder comes first, as it would if the compiler read the source itself.
        include = [f"-I{Path(source).resolve().parent}", f"-I{sdk_include}"]
        return subprocess.call([*os.environ.get("CXX", "g++").split(), "-std=c++20", *include, *flags])


def _usage(message: str) -> int:
    print(f"mcc: error: {message}\n{USAGE}", file=sys.stderr)
    return 2
