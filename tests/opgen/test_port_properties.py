"""Laws of the port, on programs put together at random: what it never touches, and that a second port finds nothing."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from opgen.port import load_mapping, port_text
from opgen.port.lexing import as_bytes, as_text, lex

MAPPING = load_mapping()
KNOWN = sorted({*MAPPING.identifiers, *MAPPING.device_names, *MAPPING.unportable, *MAPPING.namespaces})
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

pieces = st.sampled_from([*"abz 09_.,;(){}<>#", "é", "cudaMalloc", "at::cuda", "CUDA", ".cuh", "\t"])
prose = st.lists(pieces, max_size=8).map("".join)
strings = prose.map(lambda text: f'"{text}"')
characters = st.sampled_from(["'a'", "'\\''", "'\"'", "L'x'", "'\\\\'"])
raw_strings = prose.map(lambda text: f'R"x({text}" cudaFree )x"')
comments = st.one_of(prose.map(lambda text: f"// {text}\n"), prose.map(lambda text: f"/* {text} */"))
numbers = st.sampled_from(["0", "1'000'000", "0x1F'FF", "1.5e-3f", "42ULL", ".5"])
names = st.sampled_from([*KNOWN, "x", "nms_cuda", "cudaNope", "my_cuda", "int", "namespace", "auto", "kernel"])
marks = st.sampled_from([*"(){}[];,.:=<>&*", "::", "<<<", ">>>", "->", "==", "\n", " "])
lines = st.sampled_from(['\n#include "a.cuh"\n', "\n#include <cuda_fp16.h>\n", "\n#define F(x) \\\n  cudaFree(x)\n"])
programs = st.lists(
    st.one_of(strings, characters, raw_strings, comments, numbers, names, marks, lines), max_size=25
).map(" ".join)  # fmt: skip


def opaque(source: str) -> list[str]:
    lexed = lex(as_bytes(source))
    spans = sorted([*lexed.strings, *lexed.comments], key=lambda span: span.start)
    return [as_text(lexed.text[span.start : span.end]) for span in spans]


@given(programs)
@settings(max_examples=300, deadline=None)
def test_strings_and_comments_never_change(source: str) -> None:
    assert opaque(port_text(source, MAPPING).text) == opaque(source)


@given(programs)
@settings(max_examples=300, deadline=None)
def test_a_port_of_a_port_is_itself(source: str) -> None:
    once = port_text(source, MAPPING).text
    assert port_text(once, MAPPING).text == once


@given(programs)
@settings(max_examples=300, deadline=None)
def test_tokens_outside_the_tables_never_change(source: str) -> None:
    def others(text: str) -> list[str]:
        code = lex(as_bytes(text)).code
        replacements = {*MAPPING.identifiers.values(), *MAPPING.device_names.values(), *MAPPING.namespaces.values()}
        left = {*KNOWN, *replacements, *MAPPING.qualified.values(), "CUDA"}
        return [token for token in re.findall(r"\w+|[^\w\s]", code, re.ASCII) if token not in left]

    assert others(port_text(source, MAPPING).text) == others(source)


@given(programs)
@settings(max_examples=200, deadline=None)
def test_lines_stay_where_they_are(source: str) -> None:
    done = port_text(source, MAPPING)
    assert done.text.count("\n") == source.count("\n")
    for problem in done.problems:
        assert 1 <= problem.location.line <= source.count("\n") + 1


@given(st.from_regex(NAME, fullmatch=True).filter(lambda name: MAPPING.family(name) is None and name not in KNOWN))
@settings(max_examples=200, deadline=None)
def test_a_name_that_is_nobodys_passes_through(name: str) -> None:
    done = port_text(f"{name} a::{name}::b(x.{name});", MAPPING)
    assert done.text == f"{name} a::{name}::b(x.{name});" and not done.problems


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_at_all_makes_it_fail(source: str) -> None:
    port_text(source.encode("utf-8", "ignore").decode(), MAPPING)
