"""The port of one source text, as a pure function."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from opgen.diagnostics import Diagnostic
from opgen.port import findings
from opgen.port.lexing import WORD, Lexed, Span, as_bytes, as_text, blank, lex
from opgen.port.mapping import Mapping
from opgen.port.places import Places
from opgen.port.rules import Edit, Matcher, Rules, apply
from opgen.port.structure import Structure

_SCOPE_BEFORE = re.compile(r"(\w+)\s*::\s*$", re.ASCII)
_SCOPE_AFTER = re.compile(r"\s*::")
# The grammar takes the last part of `using namespace a::b;` for any name.
_NAMESPACE_BEFORE = re.compile(r"\bnamespace\s+(?:::\s*)?(?:\w+\s*::\s*)*$", re.ASCII)
_REACH = 120  # characters to look back for a scope or a macro's beginning
_MACRO_BEFORE = re.compile(r"\b(\w+)\s*\(([^()]*)$", re.ASCII)
_IN_PROSE = re.compile(r"[A-Za-z_][\w]*(?:::[A-Za-z_]\w*)*|(?<=\w)\.cuh?\b", re.ASCII)


Local = Callable[[str], "str | None"]
"""What to write for an include of one of the sources' own files; None for a header from elsewhere, which the tables
decide about."""


@dataclass(frozen=True)
class Options:
    """What a user may choose about a port."""

    rules: Rules = field(default_factory=Rules)
    strings: bool = False
    """Names in string literals, too."""
    comments: bool = False
    """Names in comments, too."""
    double_precision: bool = True
    """Whether kernels may compute in double precision on the chip meant."""


@dataclass(frozen=True)
class Ported:
    """The new text and what could not be carried over; the text is right only where no problem is an error."""

    text: str
    problems: tuple[Diagnostic, ...]
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each name was exchanged, as (old, new)."""
    unknown: Counter[str] = field(default_factory=Counter)
    """CUDA's names that no rule knows, and how often they stand here."""


def port_text(
    text: str,
    mapping: Mapping,
    path: str = "<text>",
    *,
    options: Options | None = None,
    device: bool = True,
    own: frozenset[str] = frozenset(),
    local: Local = lambda path: None,
) -> Ported:
    """`text` with every mapped name exchanged; the number of lines stays, strings and comments stay.

    Porting the result again changes nothing.

    Args:
        path: what messages call the text.
        device: whether this is a device source (`.cu`, `.cuh`) and not one of the host's.
        own: names that other sources define, so that they are no unknown ones, like those that this text defines.
        local: what to write for an include of one of the sources' own files.
    """
    return _Port(text, mapping, path, options or Options(), device, own, local).run()


class _Port:
    """One run of `port_text`: collects edits and findings."""

    def __init__(
        self,
        text: str,
        mapping: Mapping,
        path: str,
        options: Options,
        device: bool,
        own: frozenset[str],
        local: Local,
    ) -> None:
        self.text = as_bytes(text)
        self.lexed: Lexed = lex(self.text)
        self.structure = Structure(self.text)
        self.mapping, self.options, self.local, self.device = mapping, options, local, device
        self.identifiers = {**mapping.identifiers, **mapping.device_names} if device else mapping.identifiers
        self.keys = {key.rpartition("::")[2]: new for key, new in mapping.qualified.items()}
        self.known = {*self.identifiers, *mapping.namespaces, *self.keys, *mapping.unportable}
        self.beginnings = {family.old for family in mapping.foreign if family.old}
        self.own = own
        self.places = Places(path, self.text)
        self.matcher: Matcher = options.rules.compiled()
        self.edits: list[Edit] = []
        self.problems: list[Diagnostic] = []
        self.suspects: list[tuple[str, int]] = []  # unportable or unknown, unless the sources define them

    def run(self) -> Ported:
        self._apply_rules()
        self._includes()
        self._names()
        self._prose()
        unknown = self._suspects()
        self.problems += findings.broken(self.lexed, self.places, device=self.device)
        self.problems += findings.spliced(self.mapping, self.lexed.code, self.places)
        self.problems += findings.included_by_macro(self.lexed, self.places)
        moves = (place for place in findings.moves_to_cuda(self.lexed.code) if not self._covered(*place))
        self.problems += [findings.move_to_cuda(self.places, *place) for place in moves]
        if not self.options.strings:
            named = (span for span in self.lexed.strings if not self._covered(span.start, span.end))
            self.problems += findings.device_strings(self.lexed.text, named, self.places)
        self.problems += findings.device_launches(self.lexed.code, self.structure, self.places)
        if not self.options.double_precision:
            self.problems += findings.double_precision(self.lexed.code, self.structure, self.places)
        if self.structure.given_up:
            message = "the grammar makes too little sense of this file to port it"
            self.problems.append(self.places.error(0, 0, message, "is it C++ or CUDA, and complete?"))
        self.edits.sort(key=lambda edit: edit.start)
        changed = [edit for edit in self.edits if self.text[edit.start : edit.end] != edit.text]
        changes = Counter((as_text(self.text[e.start : e.end]), as_text(e.text)) for e in changed)
        new = as_text(apply(self.text, changed)) if changed else as_text(self.text)
        return Ported(new, tuple(sorted(self.problems, key=lambda p: p.location)), changes, unknown)

    # ---- the user's rules ----

    def _apply_rules(self) -> None:
        """Edits that cover whole tokens count at once; those inside a token wait until no table speaks of it."""
        self.parts: dict[int, list[Edit]] = {}
        self.done: list[Edit] = []
        if self.options.rules:
            lexed = self.lexed
            visible = blank(self.text, [*lexed.strings, *lexed.comments])
            for edit in self.matcher.edits(visible, blank(self.text, list(lexed.comments))):
                token = self._token_around(edit)
                if token is None:
                    self.done.append(edit)
                else:
                    self.parts.setdefault(token, []).append(edit)
        self.edits += self.done
        self._done_starts = [edit.start for edit in self.done]

    def _token_around(self, edit: Edit) -> int | None:
        """Where the token begins that the edit changes a part of; None where it covers what it touches."""
        starts = [span.start for span in self.lexed.includes]
        place = bisect_right(starts, edit.start) - 1
        if place >= 0:
            span = self.lexed.includes[place]
            if edit.end <= span.end:
                return None if edit.start == span.start and edit.end == span.end else span.start
        start, end = edit.start, edit.end
        while start > 0 and _in_name(self.text[start]) and _in_name(self.text[start - 1]):
            start -= 1
        while end < len(self.text) and _in_name(self.text[end - 1]) and _in_name(self.text[end]):
            end += 1
        whole = (start, end) == (edit.start, edit.end)
        inside_one = all(map(_in_name, self.text[start:end]))
        return start if inside_one and not whole else None

    def _covered(self, start: int, end: int) -> bool:
        """Whether a rule of the user's has dealt with this stretch."""
        place = bisect_right(self._done_starts, start) - 1
        if place >= 0 and self.done[place].end > start:
            return True
        return place + 1 < len(self.done) and self.done[place + 1].start < end

    def _by_parts(self, start: int, end: int) -> str | None:
        parts = self.parts.get(start)
        if parts is None:
            return None
        return apply(self.text[start:end], [Edit(e.start - start, e.end - start, e.text) for e in parts])

    # ---- includes ----

    def _includes(self) -> None:
        seen: dict[str, tuple[str | None, str, bool]] = {}
        for span in self.lexed.includes:
            if self._covered(span.start, span.end):
                continue
            path = self.text[span.start : span.end]
            if path not in seen:
                seen[path] = self._include(path)
            problem, new, by_rule = seen[path]
            if not by_rule:
                new = self._by_parts(span.start, span.end) or new
            if problem is not None:
                self.problems.append(self.places.error(span.start, span.end, f"<{path}> cannot be ported", problem))
            elif new != path:
                self.edits.append(Edit(span.start, span.end, new))

    def _include(self, path: str) -> tuple[str | None, str, bool]:
        """What is wrong with including this path, what to write, and whether more than its suffix was decided about."""
        own = self.local(as_text(path))
        if own is not None:
            return None, as_bytes(own), True
        problem, new = self.mapping.include_problem(path), self.mapping.include(path)
        return problem, new, problem is not None or new not in (path, self.mapping.with_suffix(path))

    # ---- names ----

    def _names(self) -> None:
        boring: set[str] = set()
        for match in WORD.finditer(self.lexed.code):
            word = match[0]
            start = match.start()
            if word in boring and start not in self.parts:
                continue
            if word in self.beginnings and findings.PASTED.match(self.lexed.code, match.end()):
                if not self._covered(start, match.end()):
                    self.problems.append(findings.pasted(self.mapping, self.places, word, start))
                continue
            if word not in self.known and start not in self.parts and self.mapping.family(word) is None:
                if word not in self.beginnings:
                    boring.add(word)
                continue
            if not self._covered(start, match.end()):
                self._name(word, start, match.end())

    def _name(self, word: str, start: int, end: int) -> None:
        if word == findings.ARCH and not findings.asks_for_presence(self.lexed.code, start, end):
            self.problems.append(findings.arch_number(self.places, start, end))
            return
        new = self._replacement(word, start, end)
        if new is None and word in self.mapping.unportable:
            self.suspects.append((word, start))
            return
        if new is None:
            new = self._by_parts(start, end)
        if new is not None:
            self.edits.append(Edit(start, end, new))
            if word in self.mapping.notes:
                self.problems.append(findings.note(self.mapping, self.places, word, new, start))
        if new == word:
            return  # a rule that maps a name to itself says that it may stay
        if self.mapping.family(new or word) is not None:
            self.suspects.append((new or word, start))

    def _replacement(self, word: str, start: int, end: int) -> str | None:
        """What the tables say about the name at this place; None where they say nothing."""
        if word in self.mapping.namespaces and self._is_scope(start, end):
            return self.mapping.namespaces[word]
        if word in self.keys:
            before = self.lexed.code[max(0, start - _REACH) : start]
            scope = _SCOPE_BEFORE.search(before)
            if scope is not None and f"{scope[1]}::{word}" in self.mapping.qualified:
                return self.mapping.qualified[f"{scope[1]}::{word}"]
            macro = _MACRO_BEFORE.search(before)
            if macro is not None and self.mapping.key_macros.get(macro[1]) == macro[2].count(",") + 1:
                return self.mapping.qualified.get(f"DispatchKey::{word}")
        return self.identifiers.get(word)

    def _is_scope(self, start: int, end: int) -> bool:
        # A macro's body is one piece to the grammar: what stands in front of :: there is a scope as well.
        if _SCOPE_AFTER.match(self.lexed.code, end) is not None or start in self.structure.scopes:
            return True
        return _NAMESPACE_BEFORE.search(self.lexed.code[max(0, start - _REACH) : start]) is not None

    def _suspects(self) -> Counter[str]:
        own = self.own | self.structure.own({word for word, _ in self.suspects})
        unknown: Counter[str] = Counter()
        for word, start in self.suspects:
            reason = self.mapping.unportable.get(word)
            if word in own or (word in findings.ASSEMBLY and not self._on_device(start)):
                continue
            if reason is None:
                unknown[word] += 1
            self.problems.append(findings.suspect(self.mapping, self.places, word, start))
        return unknown

    def _on_device(self, start: int) -> bool:
        return self.device or findings.inside(start, self.structure.device_code)

    # ---- strings and comments ----

    def _prose(self) -> None:
        for span in self._prose_spans():
            if self._covered(span.start, span.end):
                continue
            old = self.text[span.start : span.end]
            new = self.matcher.replace(_IN_PROSE.sub(self._word_in_prose, old))
            if new != old:
                self.edits.append(Edit(span.start, span.end, new))

    def _prose_spans(self) -> Iterator[Span]:
        if self.options.strings:
            yield from self.lexed.strings
        if self.options.comments:
            yield from self.lexed.comments

    def _word_in_prose(self, match: re.Match[str]) -> str:
        """A name in a string or a comment; what stands around it says nothing, so `cuda` alone is the device."""
        word = match[0]
        if word.startswith("."):
            return self.mapping.with_suffix(word)
        if word in self.mapping.qualified:
            return f"{word.rpartition('::')[0]}::{self.mapping.qualified[word]}"
        known = {**self.mapping.namespaces, "CUDA": "MUSA"} if self.mapping.namespaces else {}
        return "::".join(self.mapping.identifiers.get(part, known.get(part, part)) for part in word.split("::"))


def _in_name(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())
