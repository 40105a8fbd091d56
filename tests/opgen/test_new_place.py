"""Where `opgen new` puts entries, and that every other byte of the operator list stays."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen.diagnostics import Diagnostics, OpgenError
from opgen.new.place import Entry, find_spot, insert
from opgen.spec import parse_specs

TRIL = Entry("tril.out", {"structured": "false", "dispatch": {"PrivateUse1": "Tril"}})
ROPE = Entry("musa::rope(Tensor q, *, str mode='a: b') -> Tensor[]", {"dispatch": {"PrivateUse1": "Rope"}})


def names(raw: bytes) -> list[str]:
    diagnostics = Diagnostics()
    found = [spec.func for spec in parse_specs(raw, "list", diagnostics)]
    assert not diagnostics.errors, [str(item) for item in diagnostics]
    return found


def added(text: str, *entries: Entry) -> str:
    raw = text.encode()
    before = names(raw) if yaml.safe_load(text.removeprefix("\ufeff")) else []
    spot = find_spot(entries[0].func, before, {}, "mudnn")
    after = insert(raw, "list", entries, spot)
    listed = names(after)
    at = listed.index(entries[0].func.partition("(")[0])
    assert listed == [*before[:at], *(e.func.partition("(")[0] for e in entries), *before[at:]]
    return after.decode()


# ---- layouts


def test_between_sections_a_blank_line_sets_it_apart_and_comments_stay_with_what_follows() -> None:
    text = "- func: triu\n- func: triu.out\n  dispatch:\n    PrivateUse1: K  # why\n# next\n- func: zeta\n- func: b\n"
    assert added(text, Entry("triu_", {})) == text.replace("K  # why\n", "K  # why\n- func: triu_\n")
    text = "- func: tril_indices\n# next\n- func: zeta\n- func: abs\n"
    assert added(text, TRIL) == (
        "- func: tril_indices\n\n- func: tril.out\n  structured: false\n  dispatch:\n    PrivateUse1: Tril\n\n"
        "# next\n- func: zeta\n- func: abs\n"
    )


def test_an_indented_comment_stays_with_the_entry_above_it() -> None:
    text = "  - func: tril\n    # of tril\n      # too\n  # of zeta\n  - func: zeta\n  - func: abs\n"
    assert added(text, Entry("tril_", {})) == text.replace("# too\n", "# too\n  - func: tril_\n")


def test_a_dense_list_stays_dense() -> None:
    assert added("- func: tril\n- func: zeta\n- func: abs\n", TRIL).startswith(
        "- func: tril\n- func: tril.out\n  structured"
    )


def test_windows_line_ends_stay() -> None:
    text = added("- func: tril\r\n\r\n- func: abs\r\n", TRIL)
    assert "\n" not in text.replace("\r\n", "")


def test_a_missing_last_line_end_stays_missing() -> None:
    assert (
        added("- func: tril", TRIL)
        == "- func: tril\n- func: tril.out\n  structured: false\n  dispatch:\n    PrivateUse1: Tril"
    )
    assert not added("- func: zeta\r\n- func: b", TRIL).endswith("\n")
    assert added("- func: tril\n  # of tril", Entry("tril_", {})) == "- func: tril\n  # of tril\n- func: tril_"


def test_byte_order_mark_indentation_and_document_marks_stay() -> None:
    text = "\ufeff%YAML 1.1\n---\n  - func: tril\n  - {func: abs, dispatch: {PrivateUse1: K}}\n...\n"
    after = added(text, TRIL)
    assert after.startswith("\ufeff%YAML 1.1\n---\n  - func: tril\n  - func: tril.out\n    structured: false\n")
    assert after.endswith("K}}\n...\n")


@pytest.mark.parametrize("text", ["[]", "[ ]\n", "# only a comment\n", "", "\n\n", "\ufeff# bom", "---\n"])
def test_an_empty_list_gets_its_first_entry(text: str) -> None:
    assert text.rstrip("[] \n").encode() in insert(text.encode(), "list", [TRIL], find_spot(TRIL.func, [], {}, "mudnn"))
    assert names(insert(text.encode(), "list", [TRIL], find_spot(TRIL.func, [], {}, "mudnn"))) == ["tril.out"]


def test_flow_style_is_kept() -> None:
    text = "[{func: tril}, # why\n {func: abs}]\n"
    assert added(text, TRIL) == (
        "[{func: tril}, {func: tril.out, structured: false, dispatch: {PrivateUse1: Tril}}, # why\n {func: abs}]\n"
    )
    added("[{func: zeta,}, {func: abs},]", ROPE)


def test_block_scalars_and_quoted_values_before_the_spot() -> None:
    for value in ("|\n    tril\n", ">-\n    tril\n\n", '"tril"\n', "'tril'   # c\n", "!!str tril\n"):
        added(f"- func: {value}- func: abs\n", TRIL)


def test_anchors_that_nobody_uses_stay() -> None:
    text = "- &a\n  func: tril\n- &b\n  func: abs\n"
    assert "&a\n  func: tril\n- func: tril.out" in added(text, TRIL)


@pytest.mark.parametrize(
    "text", ["- func: &a tril\n- func: *a\n", "{func: tril}\n", "\t- func: tril\n", "- func: [\n", "\xff"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(OpgenError):
        insert(text.encode("latin-1"), "list", [TRIL], find_spot(TRIL.func, ["tril"], {}, "mudnn"))


# ---- which spot


@pytest.mark.parametrize(
    "func, listed, after",
    [
        ("tril_", ["abs", "tril", "tril.out", "zeta", "exp"], "tril.out"),
        ("upsample_nearest2d_backward", ["zeta", "upsample_nearest1d", "exp", "abs"], "upsample_nearest1d"),
        (
            "_upsample_bilinear2d_aa",
            ["zeta", "upsample_bilinear2d", "upsample_nearest1d", "abs"],
            "upsample_bilinear2d",
        ),
        ("linalg_lu", ["zeta", "linalg_qr", "exp", "abs"], "linalg_qr"),
        ("exp2", ["abs", "exp", "zeta"], "exp"),
        ("nonzero", ["zeta", "abs", "mm"], "abs"),
        ("musa::rope(Tensor q) -> Tensor", ["zeta", "musa::swiglu", "abs"], "musa::swiglu"),
    ],
)
def test_the_spot_is_beside_relatives_else_in_order_else_behind_its_family(
    func: str, listed: list[str], after: str
) -> None:
    families = {"abs": "mudnn", "mm": "ported", "musa::swiglu": "mudnn"}
    spot = find_spot(func, listed, families, "mudnn")
    assert spot.after is not None and listed[spot.after] == after


def test_before_the_first_of_an_alphabetical_list() -> None:
    text = "# head\n- func: bmm\n- func: cat\n- func: exp\n"
    assert added(text, Entry("abs", {})) == text.replace("- func: bmm", "- func: abs\n- func: bmm")


# ---- any list

_NAMES = ["abs", "abs_", "abs.out", "zeta", "tril", "triu_", "musa::swiglu(Tensor input) -> Tensor", "exp", "mm"]
_BREAKS = st.sampled_from(["\n", "\r\n"])


@st.composite
def lists(draw: st.DrawFn) -> str:
    newline = draw(_BREAKS)
    indent = draw(st.sampled_from(["", "  ", "    "]))
    lines = draw(st.lists(st.sampled_from(["# c", "", "---"][:2]), max_size=2))
    for name in draw(st.lists(st.sampled_from(_NAMES), min_size=1, unique=True)):
        quoted = draw(st.sampled_from([name, f"'{name}'", f'"{name}"']))
        comment = draw(st.sampled_from(["", "  # é \U0001f600", "   "]))
        style = draw(st.integers(0, 3))
        if style == 0:
            lines.append(f'{indent}- {{func: "{name}", dispatch: {{PrivateUse1: K}}}}{comment}')
        elif style == 1:
            lines += [f"{indent}-   func: {quoted}{comment}", f"{indent}    dispatch: {{PrivateUse1: K}}{comment}"]
        else:
            lines += [
                f"{indent}- func: {quoted}{comment}",
                f"{indent}  dispatch:{comment}",
                f"{indent}    PrivateUse1: K{comment}",
            ]
        lines += draw(st.lists(st.sampled_from(["", "# c - func: x", "  # c", "   "]), max_size=3))
    return (
        draw(st.sampled_from(["", "\ufeff"])) + newline.join(lines) + draw(st.sampled_from(["", newline, newline * 2]))
    )


@settings(max_examples=100, deadline=None)
@given(lists(), st.sampled_from([TRIL, ROPE, Entry("abs.Scalar", {}), Entry("zzz", {"precomputed": "none"})]))
def test_adding_keeps_every_byte_and_every_entry(text: str, entry: Entry) -> None:
    raw = text.encode()
    before = names(raw)
    spot = find_spot(entry.func, before, {}, "mudnn")
    after = insert(raw, "list", [entry], spot)
    prefix = next(i for i in range(len(after)) if after[: i + 1] != raw[: i + 1])
    assert raw[prefix:] == after[len(after) - len(raw) + prefix :]
    listed = names(after)
    at = listed.index(entry.func.partition("(")[0])
    assert [*listed[:at], *listed[at + 1 :]] == before
    assert at == (0 if spot.after is None else spot.after + 1)
