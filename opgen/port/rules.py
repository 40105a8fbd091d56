"""A user's own rules, which win over the tables.

Two ways to write them:

- A table (`.tsv`), as the project's own: `CUDA name<TAB>MUSA name`. A name stands for whole names.
- JSON (`.json`), an object of texts, as torch_musa's `SimplePorting` takes them: `{"_CUH": "_MUH"}`.
  A name in a rule stands for whole names and for parts of names between underscores: `cu` is not found in `Accumulate`.

A key that is more than a name (`::cuda::`, `#include <a.h>`, `.is_cuda()`) is text in both. Blanks in it stand for any
number of blanks. Rules are matched against code, never against comments, and against strings only where they quote one.
Of several that match at one place the longest key wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from collections.abc import Mapping as ReadOnly
from dataclasses import dataclass, field
from pathlib import Path

from opgen.diagnostics import Location, OpgenError
from opgen.port.lexing import as_bytes
from opgen.port.mapping import read_rows

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DIRECTIVE = re.compile(r"#\s*(\w+)")


@dataclass(frozen=True)
class Edit:
    """Text to put in place of a stretch of the source."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Rules:
    """`names` are for whole names; `texts` for text, with names matched at the borders of words and underscores."""

    names: ReadOnly[str, str] = field(default_factory=dict)
    texts: ReadOnly[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.names or self.texts)

    def __or__(self, other: Rules) -> Rules:
        """Both; where they speak of the same text, `other` wins."""
        return Rules({**self.names, **other.names}, {**self.texts, **other.texts})

    def compiled(self) -> Matcher:
        return Matcher(self)


class Matcher:
    """The rules as patterns: one for code, and one for those that quote a string."""

    def __init__(self, rules: Rules) -> None:
        keyed = [(key, new, _whole_name(key)) for key, new in rules.names.items()]
        keyed += [(key, new, _text(key)) for key, new in rules.texts.items() if key not in rules.names]
        keyed.sort(key=lambda rule: -len(rule[0]))
        quoting = [rule for rule in keyed if '"' in rule[0] and not rule[0].startswith("#")]
        self._code = _Alternatives([rule for rule in keyed if rule not in quoting])
        self._quoting = _Alternatives(quoting)

    def edits(self, code: str, without_comments: str) -> list[Edit]:
        """What the rules change in a text of `as_bytes`, given once without strings and comments and once without
        comments alone; in order, not overlapping."""
        found = sorted([*self._quoting.edits(without_comments), *self._code.edits(code)], key=lambda edit: edit.start)
        kept: list[Edit] = []
        for edit in found:
            if not kept or edit.start >= kept[-1].end:
                kept.append(edit)
        return kept

    def replace(self, text: str) -> str:
        """A piece of text with the rules applied."""
        return apply(text, self._code.edits(text))


class _Alternatives:
    def __init__(self, rules: list[tuple[str, str, str]]) -> None:
        self._replacements = [as_bytes(new) for _, new, _ in rules]
        self._pattern = re.compile("|".join(f"({pattern})" for _, _, pattern in rules), re.ASCII) if rules else None

    def edits(self, text: str) -> list[Edit]:
        if self._pattern is None:
            return []
        found = self._pattern.finditer(text)
        return [Edit(match.start(), match.end(), self._replacements[(match.lastindex or 1) - 1]) for match in found]


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made, which are in order and do not overlap."""
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


def _whole_name(key: str) -> str:
    return rf"(?<![\w$]){re.escape(as_bytes(key))}(?![\w$])"


def _text(key: str) -> str:
    """A text key as a pattern. Where it begins (or ends) with a letter, the text may not go on with another one."""
    pattern = r"[ \t]*".join(re.escape(part) for part in re.split(r"\s+", as_bytes(key)))
    directive = _DIRECTIVE.match(key)
    if directive is not None:  # any blanks that a directive may have
        rest = r"[ \t]+".join(map(re.escape, as_bytes(key[directive.end() :]).split()))
        pattern = rf"#[ \t]*{directive[1]}[ \t]*{rest}"
    before = r"(?<![A-Za-z0-9$])" if key[:1].isalnum() else ""
    after = r"(?![A-Za-z0-9$])" if key[-1:].isalnum() else ""
    return f"{before}{pattern}{after}"


def read_rules(path: Path) -> Rules:
    """The rules of a file. Raises OpgenError with the place of what is wrong."""
    if path.suffix == ".json":
        return rules_of(_json(path), Location(str(path)))
    names: dict[str, str] = {}
    texts: dict[str, str] = {}
    for number, columns in read_rows(path):
        here = Location(str(path), number)
        if len(columns) != 2 or not columns[0].strip():
            hint = "CUDA name<TAB>MUSA name; a file of JSON rules is called *.json"
            raise OpgenError("expected two columns separated by one tab", here, hint)
        old, new = columns
        if old in names or old in texts:
            raise OpgenError(f"'{old}' is mapped twice", here)
        (names if _NAME.fullmatch(old) else texts)[old] = new
    return Rules(names, texts)


def rules_of(table: object, here: Location) -> Rules:
    """Text rules from what JSON or a caller gave."""
    if not isinstance(table, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in table.items()):
        raise OpgenError("rules are an object whose keys and values are texts", here, hint='{"::cuda::": "::musa::"}')
    for key, new in table.items():
        if not key.strip():
            raise OpgenError("a rule's key is empty: it would match everywhere", here)
        if "\n" in new or "\r" in new:
            hint = "put one line in its place: lines of a port stand where those of the source do"
            raise OpgenError(f"the rule for {json.dumps(key)} would break a line", here, hint)
        if not _is_unicode(key + new):
            raise OpgenError(f"the rule for {json.dumps(key)} is no text: half of a surrogate pair stands in it", here)
    return Rules({}, dict(table))


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _once(pairs: list[tuple[str, object]], path: Path) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise OpgenError(f"{json.dumps(key)} is mapped twice", Location(str(path)))
        table[key] = value
    return table


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=lambda pairs: _once(pairs, path))
    except OSError as error:
        raise OpgenError(f"cannot read the rules: {error.strerror}", Location(str(path))) from error
    except UnicodeDecodeError as error:
        raise OpgenError("cannot read the rules: not UTF-8 text", Location(str(path))) from error
    except json.JSONDecodeError as error:
        raise OpgenError(f"not JSON: {error.msg}", Location(str(path), error.lineno, error.colno)) from error
