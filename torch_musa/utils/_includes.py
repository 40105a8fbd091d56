"""What a source includes of its own project: that has to be ported with it, and a change of it rebuilds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include(?:_next)?|import)[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
# Any header that macros choose: `#define HEADER "x.cuh"`.
_DEFINED = re.compile(rb'^[ \t]*#[ \t]*define[ \t]+\w+[ \t]+[<"]([^>"\n]+\.\w+)[>"]', re.MULTILINE)


def included(files: Iterable[Path], folders: Sequence[Path]) -> tuple[Path, ...]:
    """Every file that `files` include, those that these include, and so on: beside the one that includes them or in
    `folders`. Headers from elsewhere (the system's, PyTorch's) are not followed. Both branches of a condition count.

    Folders are never searched: a source may lie in a home folder, and an include folder may be /usr/include.
    """
    found: dict[Path, None] = {}
    todo = [Path(path) for path in files]
    while todo:
        path = todo.pop()
        try:
            text = path.read_bytes()
        except OSError:
            continue  # the compiler says it better
        for match in (*_INCLUDE.finditer(text), *_DEFINED.finditer(text)):
            name = os.fsdecode(match[1])
            for folder in (path.parent, *folders):
                header = Path(os.path.normpath(folder / name))
                if _is_file(header):
                    if header not in found:
                        found[header] = None
                        todo.append(header)
                    break
    return tuple(sorted(found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long a name, a NUL in it
        return False
