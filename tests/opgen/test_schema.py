"""What the generator takes for a schema PyTorch takes, too, when it registers the operator."""

from __future__ import annotations

import pytest
from generator_cases import messages, specs, upstream
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen.emit import compat
from opgen.schema import schema_faults

TYPES = compat.base_types()

# Schema with the faulty part between « and », and what is said about it.
FAULTS = {
    "f(Tensor x, int dim=«abc») -> Tensor": "argument 'dim' of type int cannot have the default 'abc'",
    "f(Tensor x, int dim=«1.5») -> Tensor": "argument 'dim' of type int cannot have the default '1.5'",
    "f(Tensor x, int dim=«None») -> Tensor": "argument 'dim' of type int cannot have the default 'None'",
    'f(Tensor x, int dim=«"x"») -> Tensor': "argument 'dim' of type int cannot have the default '\"x\"'",
    "f(Tensor x, int dim=«9223372036854775808») -> Tensor": (
        "argument 'dim' of type int cannot have the default '9223372036854775808'"
    ),
    "f(Tensor x, float eps=«inf») -> Tensor": "argument 'eps' of type float cannot have the default 'inf'",
    "f(Tensor x, float eps=«1e400») -> Tensor": "argument 'eps' of type float cannot have the default '1e400'",
    "f(Tensor x, bool b=«true») -> Tensor": "argument 'b' of type bool cannot have the default 'true'",
    "f(Tensor x, bool b=«1») -> Tensor": "argument 'b' of type bool cannot have the default '1'",
    "f(Tensor x, str s=«mean») -> Tensor": "argument 's' of type str cannot have the default 'mean'",
    "f(Tensor x, Scalar s=«None») -> Tensor": "argument 's' of type Scalar cannot have the default 'None'",
    "f(Tensor x, int[] n=«1») -> Tensor": "argument 'n' of type int[] cannot have the default '1'",
    "f(Tensor x, int[2] n=«[1, x]») -> Tensor": "argument 'n' of type int[2] cannot have the default '[1, x]'",
    "f(Tensor x, int[]? n=«[1]») -> Tensor": "argument 'n' of type int[]? cannot have the default '[1]'",
    "f(Tensor x, Tensor[] n=«[]») -> Tensor": "argument 'n' of type Tensor[] cannot have the default '[]'",
    "f(Tensor x, Tensor n=«None») -> Tensor": "argument 'n' of type Tensor cannot have the default 'None'",
    "f(Tensor x, ScalarType t=«kFloat») -> Tensor": "argument 't' of type ScalarType cannot have the default 'kFloat'",
    "f(Tensor x, Layout t=«sparse») -> Tensor": "argument 't' of type Layout cannot have the default 'sparse'",
    "f(Tensor x, MemoryFormat m=«channels_last») -> Tensor": (
        "argument 'm' of type MemoryFormat cannot have the default 'channels_last'"
    ),
    "f(«Tensr» x) -> Tensor": "unknown type 'Tensr'",
    "f(«double» x) -> Tensor": "unknown type 'double'",
    "f(Tensor x) -> «Tensr»": "unknown type 'Tensr'",
    "f(«int(a!)» x) -> Tensor": "only tensors have aliases, not int",
    "f(«Tensor??» x) -> Tensor": "no kernel can take the type Tensor??",
    "f(«int[][]» x) -> Tensor": "no kernel can take the type int[][]",
    "f(«bool[]» x) -> Tensor": "a list of bool must state its length",
    "f(int a=1, «Tensor b») -> Tensor": "argument 'b' has no default, but 'a' before it has one",
    "f(Tensor x, Tensor «x») -> Tensor": "argument 'x' is there twice",
    "f(Tensor «register») -> Tensor": "argument 'register' is a keyword of C++",
    "f(Tensor «is») -> Tensor": "argument 'is' is a word that PyTorch reserves",
    "f(Tensor «1x») -> Tensor": "argument '1x' is no identifier",
    "f(«Tensor») -> Tensor": "'Tensor' is no argument",
    "f(Tensor x«,») -> Tensor": "an argument is missing beside this comma",
    "f(Tensor x, «*») -> Tensor": "'*' must stand once, before the keyword arguments",
    "«if»(Tensor x) -> Tensor": "PyTorch reserves the word 'if'",
    "f.«default»(Tensor x) -> Tensor": "PyTorch refuses 'default' as the name of an overload",
    "f.«__x»(Tensor x) -> Tensor": "PyTorch refuses '__x' as the name of an overload",
    "f«(»Tensor x -> Tensor": "this parenthesis is never closed",
    "f(Tensor x«)»": "`-> result` must follow the arguments",
    "f(Tensor x) «->»": "no result follows",
    "f(Tensor x) -> «Tensor, Tensor»": "several results stand in parentheses",
    "f(Tensor x) -> (int, «Generator»)": "no kernel can return Generator",
    "f(Tensor x) -> «Scalar?»": "no kernel can return Scalar?",
    "f(Tensor x) -> «Tensor?[]»": "no kernel can return Tensor?[]",
    "f(Tensor x) -> «(Tensor)»": "a single result stands without parentheses",
}


@pytest.mark.parametrize("marked", FAULTS)
def test_a_fault_is_told_with_its_place(marked: str) -> None:
    schema = marked.replace("«", "").replace("»", "")
    start = marked.index("«")
    end = marked.index("»") - 1
    (fault,) = schema_faults(schema, TYPES)
    assert (fault.message, schema[fault.start : fault.end]) == (FAULTS[marked], schema[start:end])
    assert fault.start == start and fault.hint


def test_every_fault_of_a_schema_is_told() -> None:
    faults = schema_faults("f(Tensr a, int b=x, Tensor b, *, bool c=1) -> Tensr", TYPES)
    assert [fault.message.split("'")[1] for fault in faults] == ["Tensr", "b", "b", "b", "c", "Tensr"]


def test_upstreams_own_schemas_are_without_fault() -> None:
    found = {str(f.func): schema_faults(str(f.func), TYPES) for f in upstream().functions.values()}
    assert {schema: faults for schema, faults in found.items() if faults} == {}
    assert len(found) > 2500


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- func: musa::f(Tensr x) -> Tensor", "1:17"),
        ("- func: 'musa::f(Tensr x) -> Tensor'", "1:18"),
        ("# 中文 é\n- func:   musa::f(Tensor y,\n     Tensr x) -> Tensor", "3:6"),
        ("- func: >-\n    musa::f(Tensor y,\n\n            Tensr x)\n    -> Tensor", "4:13"),
        ("- func: |\r\n    musa::f(Tensor y,\r\n      Tensr x) -> Tensor", "3:7"),
        ("\ufeff- func: musa::f(Tensr x) -> Tensor", "1:17"),
        ('- func: "musa::f(Tens\\x72 x) -> Tensor"', "1:9"),
    ],
)
def test_the_place_in_the_file_is_right_however_the_scalar_is_written(text: str, place: str) -> None:
    (spec,), diagnostics = specs(text.encode())
    assert not diagnostics, messages(diagnostics)
    assert spec.schema is not None
    (fault,) = schema_faults(spec.schema, TYPES)
    where = spec.schema_at(fault.start, fault.end)
    assert str(where) == f"ops.yaml:{place}"
    if place != "1:9":
        assert where.end_column - where.column == len("Tensr")


# fmt: off
DEFAULTS = [
    "None", "True", "False", "true", "0", "1", "-1", "2.5", "1e-5", ".5", "5.", "1e400", "-9223372036854775808",
    "9223372036854775807", "9223372036854775808", "inf", "Mean", "mean", '"a"', "'b'", '"a,)"', '"a\\"b"', "float",
    "int", "long", "float32", "kFloat", "contiguous_format", "channels_last", "strided", "sparse", "[]", "[1]", "[1,2]",
    "[1.5]", "[True]", "[None]", "[ 1 ]", '"cpu"', '"meta"', '"x"', "0x10", "1j", "-", "- 1", "1_0", "(1)", "{}", "",
    "[1,]", "[[1]]", "1 1", "[1e-5, -2]", "007", "+1", '"é"',
]
NAMES = [
    "self", "x", "y", "dim", "out", "other", "weight", "_a", "a1", "from", "lambda", "print", "is", "class", "None",
    "1a",
]
# fmt: on
SUFFIXES = ["", "?", "[]", "[2]", "?[]", "[]?", "[2]?", "[0]", "??", "[][]"]

_typed = st.one_of(
    st.sampled_from(
        ["Tensor", "Tensor(a!)", "int", "SymInt[]", "float", "bool", "str?", "Tensor?[]", "int[2]", "Scalar?"]
    ),
    st.builds("{}{}".format, st.sampled_from([*TYPES, "Tensr", "double"]), st.sampled_from(SUFFIXES)),
)
_arguments = st.lists(
    st.tuples(_typed, st.sampled_from(NAMES), st.none() | st.none() | st.sampled_from(DEFAULTS)),
    max_size=4,
    unique_by=lambda argument: argument[1],
).map(lambda found: [f"{t} {name}{'' if default is None else f'={default}'}" for t, name, default in found])
_schemas = st.builds(
    lambda name, arguments, star, result: (
        f"{name}({', '.join([*arguments[:star], *(['*', *arguments[star:]] if arguments[star:] else [])])}) -> {result}"
    ),
    st.sampled_from(["f", "f", "f.out", "lambda", "f.default", "f.__x", "if", "f.in"]),
    _arguments,
    st.integers(0, 4),
    st.one_of(
        st.sampled_from(["Tensor", "()", "(Tensor, Tensor)", "(Tensor a, int b)", "Tensor(a)", "(Tensor)"]), _typed
    ),
)


@settings(max_examples=1000, deadline=None)
@given(_schemas)
def test_what_passes_is_taken_by_torchs_own_parser(schema: str) -> None:
    torch = pytest.importorskip("torch", reason="torch's parser is what the answer is compared with")
    if not schema_faults(schema, TYPES):
        assert torch._C.parse_schema(f"musa::{schema}").name == "musa::" + schema.split("(")[0].split(".")[0]


def test_defaults_that_pass_are_taken_by_torchs_own_parser() -> None:
    torch = pytest.importorskip("torch", reason="torch's parser is what the answer is compared with")
    passed = 0
    for schema in (f"f({t}{s} x={default}) -> Tensor" for t in TYPES for s in SUFFIXES for default in DEFAULTS):
        if not schema_faults(schema, TYPES):
            assert torch._C.parse_schema(f"musa::{schema}").arguments[0].has_default_value(), schema
            passed += 1
    assert passed > 150


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=60) | st.text("f(Tensor x, *=[]?)->\"'a1.", max_size=60))
def test_any_text_ends_in_faults_inside_it_or_in_none(schema: str) -> None:
    for fault in schema_faults(schema, TYPES):
        assert 0 <= fault.start <= fault.end <= len(schema)
