"""Marks stand under what differs, and the lines fit on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opgen.difference import marked, shown, signature_difference, text_difference

_types = st.sampled_from(["int64_t", "bool", "const Tensor&", "std::optional<Scalar>", "ArrayRef<int64_t>", "double"])
_signatures = st.builds(
    lambda returns, types: f"{returns} K({', '.join(f'{t} argument{i}' for i, t in enumerate(types))})",
    st.sampled_from(["Tensor", "Tensor&", "void", "std::tuple<Tensor, Tensor>"]),
    st.lists(_types, max_size=12),
)
_words = st.text("abc,(", min_size=1, max_size=20)


@given(st.data(), st.lists(_words, min_size=1, max_size=20).map(" ".join))
def test_folding_loses_nothing_and_marks_what_it_is_told_to(data: st.DataObject, text: str) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 10, len(text))))
    lines = marked("label:  ", text, (start, end))
    texts = [line[8:] for line in lines if not line.strip().startswith("^")]
    assert " ".join(texts).split() == text.split()
    assert all(len(line) <= 76 for line in lines)
    (mark,) = (i for i, line in enumerate(lines) if line.strip().startswith("^"))
    first = lines[mark].index("^") - 8
    before = sum(len(line) - 8 + 1 for i, line in enumerate(lines[: mark - 1])) + first
    assert before == start
    assert 1 <= lines[mark].count("^") <= max(end - start, 1)


@given(_signatures, _signatures)
def test_a_difference_is_found_exactly_where_there_is_one(written: str, required: str) -> None:
    difference = signature_difference(written, required)
    assert (difference is None) == (written == required)
    assert all(len(line) <= 76 for line in shown(written, required, difference).splitlines())
    if difference is not None:
        ours, theirs = written[slice(*difference.written)], required[slice(*difference.required)]
        assert ours != theirs and difference.reason


def test_spelling_is_no_difference() -> None:
    written = "Tensor f(Scalar const &a, c10::optional<at::Tensor> b = {}, const int64_t n)"
    assert signature_difference(written, "at::Tensor f(const at::Scalar & x, optional<Tensor> y, int64_t m)") is None
    assert signature_difference("auto f(void) -> Tensor", "at::Tensor f()") is None
    assert signature_difference("nonsense", "at::Tensor f()") is None


def test_schemas_differ_in_a_word() -> None:
    written, expected = "tril(Tensor self, int  k=0) -> Tensor", "tril(Tensor self, int diagonal=0) -> Tensor"
    difference = text_difference(written, expected)
    assert shown(written, expected, difference, "expected") == (
        "written:  tril(Tensor self, int  k=0) -> Tensor\n"
        "                                 ^\n"
        "expected: tril(Tensor self, int diagonal=0) -> Tensor\n"
        "                                ^^^^^^^^"
    )
    assert text_difference("a( b )", "a(b)") is None
    more = text_difference("a(b) -> c", "a(b)")
    assert more is not None and more.reason == "'->' is too much"
    missing = text_difference("a(b)", "a(b) -> c")
    assert missing is not None and missing.reason == "'->' is missing" and missing.written == (4, 4)
