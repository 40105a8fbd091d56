"""The operator list as text: positions, values, and what is said about every way to get it wrong."""

from __future__ import annotations

import pytest
from generator_cases import messages, specs
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.spec import Inherit, load_specs, select_specs


def test_every_key_is_read_with_its_place():
    (spec,), diagnostics = specs("""\
        - func: tril.out
          structured: True
          structured_inherits: MyMetaBase
          precomputed:
            - diagonal -> int var
          device_check: NoCheck
          device_guard: true
          autogen: a.out, b.out
          tags: [core, pointwise]
          torch: ">=2.11,<2.15"
          dispatch:
            PrivateUse1, SparsePrivateUse1: MusaTril
            AutogradPrivateUse1: TrilAutograd
        """)
    assert not diagnostics
    assert (spec.func, spec.namespace, spec.name, spec.schema) == ("tril.out", "aten", "tril.out", None)
    assert spec.structured is True
    assert spec.structured_inherits == "MyMetaBase"
    assert spec.precomputed == ("diagonal -> int var",)
    assert (spec.device_check, spec.device_guard) == ("NoCheck", True)
    assert spec.autogen == ("a.out", "b.out")
    assert spec.tags == ("core", "pointwise")
    assert spec.torch is not None and "2.13.0" in spec.torch and "2.15.0" not in spec.torch
    assert spec.dispatch == {
        "PrivateUse1": "MusaTril",
        "SparsePrivateUse1": "MusaTril",
        "AutogradPrivateUse1": "TrilAutograd",
    }
    assert spec.location == Location("ops.yaml", 1, 9)
    assert spec.at("dispatch.AutogradPrivateUse1") == Location("ops.yaml", 13, 26)
    assert spec.at("structured_delegate") == spec.location


@pytest.mark.parametrize("none", ["none", "None", "null", "~", ""])
def test_none_is_not_the_same_as_absent(none: str):
    (spec,), diagnostics = specs(f"""\
        - func: add.Tensor
          structured_delegate: {none}
          structured_inherits: {none}
          precomputed: {none}
        """)
    assert not diagnostics
    assert spec.structured_delegate is None
    assert spec.structured_inherits is None
    assert spec.precomputed is None
    (absent,), _ = specs("- func: add.Tensor")
    assert absent.structured_delegate is Inherit.UPSTREAM
    assert absent.precomputed is Inherit.UPSTREAM


def test_a_schema_may_be_folded_over_lines():
    (spec,), _ = specs("""\
        - func: musa::rope.half(Tensor q,
            Tensor k) -> Tensor
        """)
    assert (spec.func, spec.namespace, spec.name) == ("musa::rope.half", "musa", "rope.half")
    assert spec.schema == "rope.half(Tensor q, Tensor k) -> Tensor"


FAULTS = {
    "": "ops.yaml:1:1: error: the operator list is empty",
    "# nothing but a comment": "ops.yaml:1:1: error: the operator list is empty",
    "[]": "ops.yaml:1:1: error: the operator list is empty",
    "func: tril": "ops.yaml:1:1: error: the operator list must be a YAML list, not a mapping",
    "- tril": "ops.yaml:1:3: error: an entry must be a mapping, not a string",
    "- dispatch: {PrivateUse1: K}": "ops.yaml:1:3: error: entry without 'func'",
    "- func: [tril]": "ops.yaml:1:9: error: 'func' must be an operator name, not a list",
    "- func: 3": "ops.yaml:1:9: error: 'func' must be an operator name, not an integer",
    "- func: tril out": "ops.yaml:1:9: error: 'tril out' is not an operator name",
    "- func: tril\n  dispach: {PrivateUse1: K}": (
        "ops.yaml:2:3: error: unknown key 'dispach'\n    did you mean 'dispatch'?"
    ),
    "- func: tril\n  func: triu": "ops.yaml:2:3: error: key 'func' given twice in one entry",
    "- func: tril\n  dispatch: K": (
        "ops.yaml:2:13: error: 'dispatch' must be a mapping from dispatch keys to kernel names (PrivateUse1: Kernel), "
        "not a string"
    ),
    "- func: tril\n  dispatch: {PrivateUse: K}": (
        "ops.yaml:2:14: error: unknown dispatch key 'PrivateUse'\n    did you mean 'PrivateUse1'?"
    ),
    "- func: tril\n  dispatch: {PrivateUse1: 'a b'}": "ops.yaml:2:27: error: 'a b' is not a kernel name",
    "- func: tril\n  dispatch: {PrivateUse1: none}": (
        "ops.yaml:2:27: error: no kernel is named for 'PrivateUse1'\n    name one, or leave the key out"
    ),
    "- func: tril\n  dispatch: {PrivateUse1: }": "ops.yaml:2:27: error: no kernel is named for 'PrivateUse1'",
    "- func: tril\n  dispatch: {'PrivateUse1,': K}": (
        "ops.yaml:2:14: error: a dispatch key is missing beside a comma\n    remove the comma"
    ),
    "- func: tril\n  dispatch: {CUDA: K}": (
        "ops.yaml:2:14: error: unknown dispatch key 'CUDA'\n    the key of device musa is PrivateUse1"
    ),
    "- func: tr\u0456l": "it contains U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I",
    "- func: tr\u200bil": "it contains U+200B ZERO WIDTH SPACE",
    "- func: tril\n  dispatch: {PrivateUse1: \u041a}": "it contains U+041A CYRILLIC CAPITAL LETTER KA",
    "- func: tril\n  tags: [[core]]": "ops.yaml:2:10: error: 'tags' must list names, not a list",
    "- func: tril\n  structured_inherits: class": "ops.yaml:2:24: error: 'class' is a keyword of C++",
    "- func: tril\n  dispatch: {PrivateUse1: [K]}": "ops.yaml:2:27: error: a list is not a kernel name",
    "- func: tril\n  dispatch: {PrivateUse1: K, 'CPU, PrivateUse1': L}": (
        "ops.yaml:2:30: error: dispatch key 'PrivateUse1' given twice"
    ),
    "- func: tril\n  structured: maybe": "ops.yaml:2:15: error: 'structured' must be true or false, not a string",
    "- func: tril\n  precomputed: diagonal": (
        "ops.yaml:2:16: error: 'precomputed' must be a list such as `- diagonal -> int var`, or none, not a string"
    ),
    "- func: tril\n  structured_inherits: 'a b'": "ops.yaml:2:24: error: 'a b' is not a C++ class name",
    "- func: tril\n  device_check: nocheck": (
        "ops.yaml:2:17: error: unknown device_check 'nocheck'\n    did you mean 'NoCheck'?"
    ),
    "- func: tril\n  torch: 2.11": "ops.yaml:2:10: error: 'torch' must be a version specifier, not a number",
    "- func: tril\n  torch: '=>2'": "ops.yaml:2:10: error: '=>2' is not a version specifier",
    "- func: tril\n  tags: {a: b}": "ops.yaml:2:9: error: 'tags' must be a list of names, not a mapping",
    "- func: [": "error: not valid YAML: while parsing a flow node",
    "- &a {func: tril}\n- *a": "ops.yaml:2:3: error: YAML alias '*a' in an operator list",
    "[" * 100: "ops.yaml:1:65: error: more than 64 nested collections",
    "[" * 100_000: "error: ",
    "- func: tril\n  ? [a]\n  : b": "ops.yaml:2:5: error: unknown key a list",
    "- func: tril\n--- \n- func: triu": "error: not valid YAML: expected a single document",
    "- func: tril\n\tdispatch: x": "YAML takes no tabs there",
    "- func: tril\n  tags: a\x01b": (
        "ops.yaml:2:10: error: not valid YAML: control character U+0001\n    remove it; an operator list is plain text"
    ),
    "- func: tril\n  torch: ''": "ops.yaml:2:10: error: 'torch' is empty",
    "- func: tril\n  dispatch: {PrivateUse1: class}": "ops.yaml:2:27: error: 'class' is a keyword of C++",
    "- func: !!python/object:os.system tril": "ops.yaml:1:9: error: 'func' must be an operator name",
    b"- func: tril\n- func: \xff\n": "ops.yaml:2:9: error: not UTF-8: byte 0xff cannot be decoded",
}


@pytest.mark.parametrize("text", FAULTS, ids=range(len(FAULTS)))
def test_faults_are_told_with_their_place(text: str | bytes):
    _, diagnostics = specs(text if isinstance(text, bytes) else text.encode())
    assert FAULTS[text] in messages(diagnostics)


def test_all_faults_come_out_in_one_run():
    entries, diagnostics = specs("""\
        - func: tril
          structured: 3
          dispach: {}
        - nonsense
        - func: triu
          torch: x
        """)
    assert len(diagnostics.errors) == 4
    assert [(e.func, e.valid) for e in entries] == [("tril", False), ("triu", False)]


def test_an_alias_bomb_stays_small():
    levels = "\n".join(f"- &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 30))
    _, diagnostics = specs(f"- &l0 [a]\n{levels}")
    assert "YAML alias '*l0'" in messages(diagnostics)


def test_duplicates_are_told_unless_they_exist_in_different_releases():
    text = """\
        - func: tril
          torch: "<2.12"
        - func: tril
          torch: ">=2.12"
        - func: triu
        - func: triu
        """
    entries, diagnostics = specs(text)
    assert [e.location.line for e in select_specs(entries, "2.13.0+cpu", diagnostics)] == [3, 5]
    assert messages(diagnostics) == (
        "ops.yaml:6:9: error: duplicate entry for 'triu'\n    the first one is at ops.yaml:5:9; merge the two"
    )
    assert [e.location.line for e in select_specs(entries, "2.11.0", Diagnostics())] == [1, 5]
    # A nightly counts as the release it leads to.
    assert [e.location.line for e in select_specs(entries, "2.12.0a0+git123", Diagnostics())] == [3, 5]


def test_two_schemas_of_one_new_operator_are_told_to_be_overloads():
    entries, diagnostics = specs("- func: musa::f(Tensor a) -> Tensor\n- func: musa::f(Tensor a, int b) -> Tensor")
    select_specs(entries, "2.13.0", diagnostics)
    assert messages(diagnostics).endswith("merge the two, or name an overload: musa::f.other(...)")


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(OpgenError, match="no such operator list"):
        load_specs(tmp_path / "none.yaml", Diagnostics())
    with pytest.raises(OpgenError, match="cannot read the operator list"):
        load_specs(tmp_path, Diagnostics())


def test_an_endless_file_is_an_error():
    diagnostics = Diagnostics()
    assert load_specs("/dev/zero", diagnostics) == ()
    assert "larger than 2 MiB" in messages(diagnostics)


_fragments = st.sampled_from(
    [
        "- ",
        "func: ",
        "tril",
        ".out",
        "dispatch:",
        "\n  ",
        "\n",
        "PrivateUse1: ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "!!",
        "'",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.lists(_fragments, max_size=40).map("".join).map(str.encode)))
def test_any_bytes_end_in_entries_or_diagnostics(raw: bytes):
    entries, diagnostics = specs(raw)
    assert entries or diagnostics.errors
