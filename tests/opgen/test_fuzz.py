"""Any bytes as operator list, and any bytes as kernel source, end in success or in diagnostics.

No traceback, no hang, no memory beyond measure; and what passes the checks can be emitted. Each test makes a hundred
examples; OPGEN_FUZZ_EXAMPLES asks for another number.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
from generator_cases import YAML, upstream
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgen.backend import MUSA
from opgen.checks import check_sources
from opgen.classify import classify
from opgen.cli import main
from opgen.diagnostics import Diagnostics, as_record, from_record
from opgen.emit import compat, files
from opgen.kernel_source import parse_source, skeleton
from opgen.kernels import KernelIndex, scan_kernels
from opgen.libtorch import Exports, load_exports
from opgen.redundant import warn_redundant
from opgen.report import as_github, as_json
from opgen.schema import schema_faults
from opgen.spec import parse_specs
from opgen.upstream import find_torch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = int(os.environ.get("OPGEN_FUZZ_EXAMPLES", "100"))
LIST = (ROOT / "yaml" / "musa_functions.yaml").read_bytes()
LINES = LIST.splitlines(keepends=True)
SECONDS = 30
MEGABYTES = 400

fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,  # an alarm does not mistake a busy machine for a hang
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@cache
def kernels() -> KernelIndex:
    return scan_kernels(ROOT)


@cache
def exports() -> Exports | None:
    return load_exports(find_torch())


@contextmanager
def bounded() -> Iterator[None]:
    """Fails what runs for SECONDS or grows the process by MEGABYTES."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still running after {SECONDS} seconds")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handler = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024


def generated(raw: bytes) -> Diagnostics:
    """All of generation but the files; what must hold of its outcome is asserted here."""
    upstream(), kernels(), exports()  # loading them is not what is measured
    diagnostics = Diagnostics()
    with bounded():
        entries = parse_specs(raw, YAML, diagnostics)
        found = classify(entries, upstream(), kernels(), MUSA, diagnostics, exports())
        check_sources(found, kernels(), MUSA, diagnostics)
        warn_redundant(entries, found, upstream(), kernels(), MUSA, exports(), diagnostics)
        if not diagnostics.errors:
            assert entries
            assert len(files.render(found, upstream().torch_version, MUSA)) > MUSA.shard_count
    lines = raw.count(b"\n") + raw.count(b"\r") + raw.count(b"\xc2\x85") + raw.count(b"\xe2\x80") + 2
    for item in diagnostics:
        assert item.message and "\n" not in item.message and "Error" not in item.message, item
        assert item.location.path != YAML or 0 <= item.location.line <= lines
        assert str(item).startswith(f"{item.location}: {item.severity.value}: ")
        assert "\n" not in as_github(item) and from_record(as_record(item)) == item
    assert len(json.loads(as_json(diagnostics))["diagnostics"]) == len(diagnostics.items)
    return diagnostics


# ---- bytes

# fmt: off
_STRUCTURE = [
    b"- ", b"func: ", b"tril", b".out", b"dispatch:", b"\n  ", b"\n", b"\r", b"\t", b"PrivateUse1: ", b"{", b"}", b"[",
    b"]", b"&a ", b"*a", b"!!", b"!", b"'", b'"', b"|", b">", b"%", b"@", b"?", b": ", b",", b"#", b"---", b"...",
    b"<<", b"~", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\xc2\x85", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\\x", b"1e400",
]
# fmt: on
_structure = st.sampled_from(_STRUCTURE)
raw_bytes = st.one_of(
    st.binary(max_size=300),
    st.lists(_structure, max_size=60).map(b"".join),
    st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass")),
)


@fuzz
@given(raw_bytes)
def test_any_bytes(raw: bytes) -> None:
    assert generated(raw).errors or b"func" in raw


# ---- the project's own list, damaged

_WORDS = (
    b"func dispatch structured structured_delegate structured_inherits precomputed device_check device_guard "
    b"autogen tags torch none null true false NoCheck ExactSame PrivateUse1 AutogradPrivateUse1 CPU Meta "
    b"SparsePrivateUse1 QuantizedPrivateUse1 cpu_fallback tril.out add.out lerp.Scalar_out musa::f(Tensor) "
    b"K at::native::K -> (Tensor =None [] ~ *a &a !!str << 0x10 1e9 core \xc3\xa9 \x00 \xff"
).split(b" ")


@st.composite
def damaged_lists(draw: st.DrawFn, lines: list[bytes] = LINES) -> bytes:
    start = draw(st.integers(0, len(lines) - 1))
    window = lines[start : start + draw(st.integers(1, 25))]
    for _ in range(draw(st.integers(1, 6))):
        if not window:
            break
        i = draw(st.integers(0, len(window) - 1))
        action = draw(st.sampled_from(["drop", "twice", "swap", "indent", "word", "byte", "cut"]))
        line = window[i]
        if action == "drop":
            del window[i]
        elif action == "twice":
            window.insert(i, line)
        elif action == "swap":
            j = draw(st.integers(0, len(window) - 1))
            window[i], window[j] = window[j], line
        elif action == "indent":
            window[i] = b" " * draw(st.integers(0, 4)) + line.lstrip(b" ")
        elif action == "word":
            parts = line.split(b" ")
            parts[draw(st.integers(0, len(parts) - 1))] = draw(st.sampled_from(_WORDS))
            window[i] = b" ".join(parts).rstrip(b"\n") + b"\n"
        else:
            at = draw(st.integers(0, len(line)))
            window[i] = line[:at] + (draw(st.binary(max_size=3)) + line[at:] if action == "byte" else b"")
    return b"".join(window)


@fuzz
@given(damaged_lists())
def test_the_own_list_damaged(raw: bytes) -> None:
    generated(raw)


# ---- entries made of words that mean something


@cache
def _names() -> list[str]:
    return sorted(upstream().functions)


@cache
def _kernel_names() -> list[str]:
    theirs = {m.kernel for op in list(upstream().functions)[::7] for m in upstream().kernels(op).values()}
    ours = {*list(kernels().functions)[:200], *list(kernels().impls)[:200]}
    return sorted({*theirs, *ours, "cpu_fallback", "K", "K_symint", "class", "a b", ""})


_types = st.sampled_from([*compat.base_types(), "Tensor", "Tensor", "Tensor(a!)", "double", "Tensr"])
_suffixes = st.sampled_from(["", "", "", "?", "[]", "[2]", "?[]", "[]?", "[0]", "??"])
_defaults = st.sampled_from(["", "", "=None", "=1", "=1.5", "=True", "=[]", "=abc", "='a'", "=-1", "=[1, 2]", "="])
_argument = st.builds(
    "{}{} {}{}".format,
    _types,
    _suffixes,
    st.sampled_from(["self", "x", "y", "out", "class", "is", "a1", "_"]),
    _defaults,
)
_schemas = st.builds(
    "{}::{}({}) -> {}".format,
    st.sampled_from(["musa", "aten", "mine", "prim", "std"]),
    st.sampled_from(["f", "f.out", "add.Tensor", "f_", "_f", "f.default", "__add__"]),
    st.lists(st.one_of(_argument, st.just("*")), max_size=5).map(", ".join),
    st.one_of(
        st.builds("{}{}".format, _types, _suffixes), st.sampled_from(["()", "(Tensor, Tensor)", "(Tensor a, int b)"])
    ),
)


@st.composite
def entries(draw: st.DrawFn) -> str:
    names = _names()
    start = draw(st.integers(0, len(names) - 1))
    # Neighbours in the alphabet are each other's overloads, so that groups come about.
    name = names[start]
    func = draw(
        st.one_of(
            st.just(name),
            st.just(name),
            st.just(str(upstream().functions[name].func)),
            _schemas,
            st.just(name.replace("a", "e")),
        )
    )
    lines = [f"- func: {func}"]
    name_or_none = st.sampled_from(
        ["none", "~", name, names[(start + 1) % len(names)], "TensorIteratorBase", "Base", "a::b"]
    )
    values = {
        "structured": st.sampled_from(["true", "false", "none", "1"]),
        "structured_delegate": name_or_none,
        "structured_inherits": name_or_none,
        "precomputed": st.sampled_from(
            [
                "none",
                "[dim -> int d]",
                "[self -> int a, int b]",
                "[dim -> int dim]",
                "['int a']",
                "[->]",
                "[x -> y z]",
                "[]",
            ]
        ),
        "device_check": st.sampled_from(["NoCheck", "ExactSame", "nocheck", "none"]),
        "device_guard": st.sampled_from(["true", "false", "maybe"]),
        "autogen": st.sampled_from(["x.out", name, "[a, b]"]),
        "tags": st.sampled_from(["core", "[pointwise, nondeterministic_seeded]", "zzz", "''"]),
        "torch": st.sampled_from(
            ['">=2.11"', '"<2.9"', '"==2.13.*"', '"!=2.13"', "2.13", '"x"', '">=2.9,<99999999999999999999"']
        ),
        "dispach": st.just("x"),
    }
    for key in draw(st.lists(st.sampled_from(sorted(values)), max_size=3, unique=True)):
        lines.append(f"  {key}: {draw(values[key])}")
    keys = st.sampled_from(
        [*MUSA.dispatch_keys, MUSA.dispatch_key, MUSA.dispatch_key, *MUSA.new_op_dispatch_keys, "XPU"]
    )
    own = [m.kernel for m in upstream().kernels(name).values()] or ["K"]
    kernel = st.one_of(st.sampled_from(own), st.sampled_from(_kernel_names()))
    dispatch = draw(st.dictionaries(keys, kernel, max_size=3))
    if dispatch:
        lines += ["  dispatch:", *(f"    {key}: {value}" for key, value in dispatch.items())]
    return "\n".join(lines) + "\n"


@fuzz
@given(st.lists(entries(), min_size=1, max_size=6).map("".join))
def test_entries_made_of_words_that_mean_something(text: str) -> None:
    generated(text.encode())


@st.composite
def groups(draw: st.DrawFn) -> str:
    """All or some overloads of one group, each with settings that may contradict the others'."""
    grouped = sorted({str(g.out.func.name) for g in upstream().groups.values()})
    group = upstream().groups[draw(st.sampled_from(grouped))]
    members = [str(f.func.name) for f in group.functions()]
    text = ""
    for name in draw(st.lists(st.sampled_from(members), min_size=1, max_size=4)):
        text += f"- func: {name}\n"
        settings_ = [
            *("structured: false", "structured: true", "structured_delegate: none", "structured_inherits: none"),
            *("structured_inherits: TensorIteratorBase", "structured_inherits: MyMetaBase", "precomputed: none"),
            *(f"precomputed: [{a.name} -> int v]" for a in group.out.func.arguments.flat_non_out),
            *("device_check: NoCheck", "device_guard: false", f"structured_delegate: {group.out.func.name}"),
        ]
        lines = st.lists(st.sampled_from(settings_), max_size=3, unique_by=lambda line: line.split(":")[0])
        text += "".join(f"  {line}\n" for line in draw(lines))
        kernel = draw(
            st.sampled_from([None, None, "K", "cpu_fallback", *(m.kernel for m in upstream().kernels(name).values())])
        )
        if kernel is not None:
            text += f"  dispatch: {{{draw(st.sampled_from(MUSA.dispatch_keys[:2]))}: {kernel}}}\n"
    return text


def any_kernels(raw: bytes) -> None:
    """Without regard to sources: what is classified without error can be emitted."""
    diagnostics = Diagnostics()
    with bounded():
        found = classify(parse_specs(raw, YAML, diagnostics), upstream(), KernelIndex(), MUSA, diagnostics)
        if not diagnostics.errors and found:
            files.render(found, upstream().torch_version, MUSA)


@fuzz
@given(st.lists(groups(), min_size=1, max_size=3).map("".join))
def test_groups_whose_overloads_contradict_each_other(text: str) -> None:
    generated(text.encode())
    any_kernels(text.encode())


@fuzz
@given(_schemas)
def test_what_passes_as_a_schema_can_be_emitted(schema: str) -> None:
    for tags in ("", "  tags: nondeterministic_seeded\n"):
        raw = f"- func: {schema}\n{tags}  dispatch: {{PrivateUse1: K, Meta: M, AutogradPrivateUse1: A}}\n".encode()
        generated(raw)
        any_kernels(raw)
    assert all(f.start <= f.end for f in schema_faults(schema, compat.base_types()))


# ---- kernel sources

_SOURCES = sorted((ROOT / "kernels").rglob("*.c[pu]*"))
_code = st.sampled_from(
    [
        "namespace",
        "at::musa",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ";",
        ",",
        "&",
        "*",
        "::",
        '"',
        "'",
        "\\",
        "\n",
        "#if",
        "#if~0",
        "#else",
        "#endif",
        "#define~X",
        "#include",
        'R"(',
        ')"',
        "//",
        "/*",
        "*/",
        "TORCH_IMPL_FUNC(K)",
        "TORCH_META_FUNC2(a,~b)",
        "TORCH_PRECOMPUTE_META_FUNC(k)",
        "REGISTER_DISPATCH(s,~&f)",
        "Tensor",
        "const~Tensor&",
        "int64_t",
        "std::optional<Scalar>",
        "static",
        "inline",
        "template<class~T>",
        "auto",
        "->",
        "noexcept",
        'extern~"C"',
        "=~0",
        "=~default",
        "operator",
        "namespace~{",
        "class",
        "struct",
        "decltype(x)",
        "[[nodiscard]]",
        "__global__",
        "<<<",
        ">>>",
        "1'000",
        "'c'",
        'u8R"x(',
        ')x"',
        "\x00",
        "ÿ",
        "中",
    ]
).map(lambda word: word.replace("~", " "))


@st.composite
def damaged_sources(draw: st.DrawFn) -> bytes:
    return draw(damaged_lists(draw(st.sampled_from(_SOURCES)).read_bytes().splitlines(keepends=True) or [b"\n"]))


@fuzz
@given(
    st.one_of(
        st.binary(max_size=400),
        st.lists(_code, max_size=80).map(lambda words: " ".join(words).encode()),
        damaged_sources(),
    )
)
def test_any_kernel_source(source: bytes) -> None:
    with bounded():
        text = skeleton(source)
        found = parse_source(source)
    assert len(text) == len(source) and text.count(b"\n") == source.count(b"\n")
    for item in found:
        assert item.line >= 1 and item.column >= 1 and item.name
        assert "\n" not in item.text


# ---- sizes at which what is quadratic, or recursive, shows

MANY = 3000


def many(template: str, number: int = MANY) -> str:
    return ", ".join(template.format(i) for i in range(number))


LARGE_LISTS = {
    "unknown operators": "".join(f"- func: op{i}x{i * 7919 % 997}\n" for i in range(MANY)),
    "duplicates": "- func: nonzero\n" * MANY,
    "too many entries": "- func: nonzero\n" * 20_000,
    "unknown keys": "- func: nonzero\n" + "".join(f"  key{i}: 1\n" for i in range(MANY)),
    "a schema with many arguments": "- func: musa::f("
    + ", ".join(f"Tensor a{i}" for i in range(MANY))
    + ") -> Tensor\n",
    "a schema with many faults": f"- func: musa::f({many('Tensr a{}=x', 500)}) -> Tensr\n",
    "another schema": f"- func: nonzero({many('Tensor a{}')}) -> Tensor\n",
    "deep brackets in a schema": f"- func: musa::f({'(' * MANY}{')' * MANY}) -> {'(' * MANY}{')' * MANY}\n",
    "a deep type": f"- func: musa::f(int{'[]' * MANY} x) -> Tensor{'?' * MANY}\n",
    "a deep default": f"- func: 'musa::f(int[] x={'[' * MANY}{']' * MANY}) -> Tensor'\n",
    "precomputed": "- func: tril.out\n  precomputed: ["
    + ", ".join(f"diagonal -> int v{i}" for i in range(MANY))
    + "]\n",
    "tags": "- func: nonzero\n  tags: ["
    + ", ".join(f"t{i}" for i in range(MANY))
    + "]\n  dispatch: {PrivateUse1: K}\n",
    "releases": f"- func: nonzero\n  torch: '{many('>=2.{}')}'\n",
    "a long name": "- func: " + "a" * 1_000_000,
    "a long kernel": "- func: nonzero\n  dispatch: {PrivateUse1: " + "a" * 1_000_000 + "}\n",
    "a long line": "- " * 900_000,
    "flow keys": "{" + "a, " * 600_000 + "}",
    "quotes": "- func: '" + "''" * 900_000 + "'",
    "folded lines": "- func: " + "a \n   " * 300_000,
    "too large": "#" * 3_000_000,
    "anchors": "".join(f"- &a{i} {{func: nonzero}}\n" for i in range(MANY)),
}
LARGE_SOURCES = {
    "namespaces": b"namespace a {" * MANY + b"}" * MANY,
    "inline namespaces": b"namespace a::b { inline namespace c {" * MANY + b"}}" * MANY,
    "linkage": b'extern "C" {' * MANY + b"}" * MANY,
    "open namespaces": b"namespace a {" * MANY,
    "parentheses": b"namespace at::musa { Tensor " + b"(" * MANY + b"f" + b")" * MANY + b"(int x) {} }",
    "templates": b"namespace at::musa { Tensor f(" + b"a<" * MANY + b"int" + b">" * MANY + b" x) {} }",
    "pointers": b"namespace at::musa { Tensor " + b"*" * MANY + b"f(int x) {} }",
    "qualifiers": b"namespace at::musa { Tensor f(" + b"a::" * MANY + b"T x) {} }",
    "words": b"a " * 100_000 + b"{} " * 100,
    "braces": b"{" * 100_000,
    "quotes": b'"' * 300_000,
    "raw strings": b'R"(' * 100_000,
    "conditionals": b"#if 0\n" * 50_000,
    "continued lines": b"#define " + b"\\\n" * 100_000,
    "registrations": b"REGISTER_DISPATCH(" * 30_000 + b"REGISTER_DISPATCH(a, " + b"x" * 300_000,
    "comments": b"/* " * 100_000,
}


@pytest.mark.parametrize("name", LARGE_LISTS)
def test_a_large_list(name: str) -> None:
    generated(LARGE_LISTS[name].encode())


@pytest.mark.parametrize("name", LARGE_SOURCES)
def test_a_large_source(name: str) -> None:
    with bounded():
        parse_source(LARGE_SOURCES[name])


@pytest.mark.parametrize(
    "source",
    [b"A\x80A(){", b"namespace at::musa { T\xff f(int \xe9) {} }", "namespace at::musa { T中 f() {} }".encode()],
)
def test_a_source_that_is_not_utf_8(source: bytes) -> None:
    """Found by the test above this one: offsets count bytes, and text with replacement characters has others."""
    assert all(item.name == "f" for item in parse_source(source))


# ---- the command itself


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's catalogue is loaded once, not once for each example."""
    monkeypatch.setattr("opgen.upstream.load_upstream", lambda install=None: upstream())


@fuzz
@given(
    raw=st.one_of(raw_bytes, damaged_lists(), entries().map(str.encode)),
    source=st.one_of(st.binary(max_size=80), damaged_sources()),
    output=st.sampled_from(["text", "json", "github"]),
    verb=st.sampled_from(["gen", "check"]),
)
def test_the_command(raw, source, output, verb, tmp_path, capsys, loaded) -> None:
    kernels_folder = tmp_path / "kernels"
    (kernels_folder / "mudnn").mkdir(parents=True, exist_ok=True)
    (kernels_folder / "mudnn" / "K.cpp").write_bytes(source)
    (tmp_path / "ops.yaml").write_bytes(raw)
    out = tmp_path / "out"
    arguments = [verb, "--yaml", tmp_path / "ops.yaml", "--kernels", kernels_folder, "--format", output]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with bounded(), pytest.raises(SystemExit) as caught:
        main([str(a) for a in (*arguments, *(("--out", out) if verb == "gen" else ()))])
    printed, said = capsys.readouterr()
    assert caught.value.code in (0, 1)
    assert "Traceback" not in printed + said
    if output == "json":
        assert (json.loads(printed)["errors"] > 0) == (caught.value.code == 1)
    if caught.value.code == 1:
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
