"""A compiler launcher (CMAKE_CXX_COMPILER_LAUNCHER) that checks instead of compiling.

    python syntax_only.py g++ ... -o out.o -c in.cpp

g++ parses and instantiates everything as usual but emits no code, in a third of the time; an empty object marks the
file as checked, so that Ninja checks it again only when something it includes has changed. Precompiled headers are
made for real. Stands alone: it runs once for each file, so it imports nothing.
"""

import subprocess
import sys


def syntax_command(command: list[str]) -> tuple[list[str], str | None]:
    """The command to run instead, and the object to mark, None where the command stays as it is."""
    if "c++-header" in command or "-c" not in command or "-o" not in command:
        return command, None
    return [*command, "-fsyntax-only"], command[command.index("-o") + 1]


def main(arguments: list[str]) -> int:
    command, marker = syntax_command(arguments)
    code = subprocess.run(command, check=False).returncode
    if code == 0 and marker is not None:
        with open(marker, "wb"):  # noqa: PTH123 (pathlib would triple the start-up time)
            pass
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
