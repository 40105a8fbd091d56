"""mcc for the host: compiles `.mu` with the C++ compiler of the machine.

    mcc --translate kernel.mu -o kernel.mu.cpp [--presumed kernel.cu] [--include first.h]    (a .muh header likewise)
    mcc --translate include/ -o translated/                                (every header below a folder)
    mcc [flags of the C++ compiler] -c kernel.mu -o kernel.o

Launches and shared memory are the pieces of MUSA's dialect that are not C++; launches.py and shared.py rewrite them.
Everything else (`__global__`, `threadIdx`, `dim3`) is declared by `musa_kernel_host.h`, which the result includes. No
line moves, so the compiler's messages name the line of the `.mu` (or of the file given as --presumed). Compiling also
rewrites the headers that the source includes with quotes; --translate takes one file at a time, or a whole folder of
headers, for includes in angle brackets: there, what an earlier run wrote and has no source any more is removed.

`$CXX` names the compiler (default `g++`). Exit code: 1 for a fault in the source, else the compiler's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cccl import include_folder
from folder import translate_folder, write_if_changed
from source import SourceError
from translate import Overlay, rewrite, translation_unit

# In a shared library too, a kernel may go into the loop over its threads; a later -O of the user's wins.
FLAGS = ("-O2", "-fno-semantic-interposition", "-fsanitize=bounds", "-Wno-unknown-pragmas")
USAGE = (
    "usage: mcc --translate INPUT -o OUTPUT [--presumed NAME] [--include H] | mcc [compiler flags] -c FILE.mu -o FILE.o"
)


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
    options = {"-o": "", "--presumed": "", "--include": ""}
    for option in options:
        if option in rest:
            at = rest.index(option)
            if at + 1 == len(rest):
                return _usage(f"{option} needs a value")
            options[option] = rest[at + 1]
            del rest[at : at + 2]
    if len(rest) != 1 or not options["-o"]:
        return _usage("one input and -o OUTPUT are needed")
    if Path(rest[0]).is_dir():
        return translate_folder(Path(rest[0]), Path(options["-o"]))
    name = options["--presumed"] or rest[0]
    text = rewrite(_read(Path(rest[0])), name)
    write_if_changed(Path(options["-o"]), translation_unit(text, name, options["--include"]))
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _compile_command(arguments: list[str]) -> int:
    sources = [argument for argument in arguments if argument.endswith(".mu")]
    if len(sources) != 1:
        return _usage(f"one .mu file is needed, {len(sources)} given")
    source = sources[0]
    sdk_include = Path(__file__).resolve().parents[2] / "include"
    with tempfile.TemporaryDirectory(prefix="mcc-") as folder:
        overlay = Overlay(Path(folder), _include_folders(arguments), sdk_include)
        body = overlay.rewrite(_read(Path(source)), source, Path(source).resolve().parent)
        text = translation_unit(body, source)
        translated = Path(folder) / (Path(source).name + ".cpp")
        translated.write_text(text, encoding="utf-8")
        flags = [str(translated) if argument == source else argument for argument in arguments]
        # The source's own folder comes first, as it would if the compiler read the source itself.
        include = [f"-I{Path(source).resolve().parent}", f"-I{sdk_include}"]
        cccl = include_folder()
        if cccl is not None:
            include += ["-isystem", str(cccl)]
        return subprocess.call([*os.environ.get("CXX", "g++").split(), "-std=c++20", *FLAGS, *include, *flags])


def _include_folders(arguments: list[str]) -> list[Path]:
    """What `-I DIR` and `-IDIR` name."""
    folders = []
    for index, argument in enumerate(arguments):
        if argument == "-I" and index + 1 < len(arguments):
            folders.append(Path(arguments[index + 1]))
        elif argument.startswith("-I"):
            folders.append(Path(argument[2:]))
    return folders


def _usage(message: str) -> int:
    print(f"mcc: error: {message}\n{USAGE}", file=sys.stderr)
    return 2
