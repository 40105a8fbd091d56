"""From MUSA's dialect to C++, by text: what is rewritten, and the headers that a source brings along."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bounds import bounds_edits
from constants import constant_edits
from launches import launch_edits
from shared import shared_edits
from source import Edit, Source, apply, quoted

HEADER = "musa_kernel_host.h"
MACRO = "__MUSACC__"  # what the real compiler defines
_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', re.MULTILINE)
_NOINLINE = "__noinline__"


def rewrite(text: str, name: str) -> str:
    """C++ for MUSA's text; `name` is what messages call it. No line moves. Raises SourceError."""
    return apply(text, edits(Source(text, name)))


def edits(source: Source) -> list[Edit]:
    """All that has to change in one text."""
    return [
        *launch_edits(source),
        *shared_edits(source),
        *bounds_edits(source),
        *constant_edits(source),
        *_noinline_edits(source),
    ]


def translation_unit(text: str, name: str, include: str = "") -> str:
    """A whole `.mu` as the C++ compiler reads it; `include` names a header to read in front of it."""
    more = f"#include {quoted(include)}\n" if include else ""
    return f"#define {MACRO} 1\n#include {quoted(HEADER)}\n{more}#line 1 {quoted(name)}\n{text}"


def _noinline_edits(source: Source) -> list[Edit]:
    # A macro would hit the C++ library, which writes the word inside an attribute.
    tokens = source.tokens
    return [
        Edit(token.start, token.end, "__attribute__((noinline))")
        for index, token in enumerate(tokens)
        if token.text == _NOINLINE and (index < 2 or tokens[index - 1].text != "(")
    ]


class Overlay:
    """Copies of the quoted headers that a source includes, rewritten where they hold MUSA's dialect.

    A header that needs no change, and includes none that does, is left where it is.
    """

    def __init__(self, folder: Path, search: Sequence[Path], untouched: Path) -> None:
        self._folder = folder
        self._search = search
        self._untouched = untouched  # the toolkit's own headers
        self._done: dict[Path, Path | None] = {}

    def rewrite(self, text: str, name: str, folder: Path) -> str:
        """The text with its dialect rewritten and its includes pointing at rewritten headers."""
        source = Source(text, name)
        return apply(text, [*edits(source), *self._include_edits(source, folder)])

    def _include_edits(self, source: Source, folder: Path) -> list[Edit]:
        found = []
        for match in _INCLUDE.finditer(source.text):
            header = self._find(match[2], folder)
            if header is not None:
                path = self._header(header) or header
                found.append(Edit(match.start(), match.end(), f"{match[1]}{quoted(str(path))}"))
        return found

    def _find(self, name: str, folder: Path) -> Path | None:
        for place in [folder, *self._search]:
            path = place / name
            if path.is_file() and self._untouched not in path.resolve().parents:
                return path.resolve()
        return None

    def _header(self, path: Path) -> Path | None:
        """Where the rewritten copy of a header is; None where it needs none."""
        if path in self._done:
            return self._done[path]
        self._done[path] = None  # a header that includes itself, in the end
        text = path.read_text(encoding="utf-8")
        source = Source(text, str(path))
        includes = self._include_edits(source, path.parent)
        own = edits(source)
        moved = any(copy is not None and quoted(str(copy)) in edit.text for edit in includes for copy in self._copies())
        if own or moved:
            copy = self._folder / f"{len(self._done)}-{path.name}"
            body = apply(text, [*own, *includes])
            copy.write_text(f"#line 1 {quoted(str(path))}\n{body}", encoding="utf-8")
            self._done[path] = copy
        return self._done[path]

    def _copies(self) -> list[Path]:
        return [copy for copy in self._done.values() if copy is not None]
