"""A folder of headers, translated whole."""

from __future__ import annotations

import sys
from pathlib import Path

from source import SourceError
from translate import rewrite, translation_unit

_DEVICE = (
    ".muh"  # these need the dialect; a .h may be meant for the host's compiler and only gets its dialect rewritten
)
# Headers of somebody else's: their warnings are nobody's here.
_QUIET = "#pragma GCC system_header\n"
_HEADERS = (_DEVICE, ".h", ".hpp")


def translate_folder(source: Path, target: Path) -> int:
    """Every header below `source` to its place below `target`; what has no source any more goes.

    A header that cannot be translated is told about and left out: who includes it learns that from the compiler.
    """
    status = 0
    wanted = set()
    for path in sorted(path for path in source.rglob("*") if path.suffix in _HEADERS):
        name = str(path)
        try:
            text = rewrite(path.read_text(encoding="utf-8"), name)
        except SourceError as error:
            print(error, file=sys.stderr)
            status = 1
            continue
        whole = translation_unit(text, name) if path.suffix == _DEVICE else f'#line 1 "{name}"\n{text}'
        whole = f"{_QUIET}{whole}"
        write_if_changed(target / path.relative_to(source), whole)
        wanted.add(path.relative_to(source))
    for path in [path for path in target.rglob("*") if path.suffix in _HEADERS]:
        if path.relative_to(target) not in wanted:
            path.unlink()
    return status


def write_if_changed(path: Path, text: str) -> None:
    """An unchanged file keeps its time, so that a build step recompiles nothing for it."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
