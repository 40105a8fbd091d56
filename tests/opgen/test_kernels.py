"""The kernel scan: what it sees, what it must not see, and that noise in the text never changes either."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen import cache, kernels
from opgen.cpp import canonical_signature, canonical_type
from opgen.diagnostics import Location, OpgenError
from opgen.kernel_source import Found, parse_source, skeleton


def names(source: str) -> set[tuple[str, str]]:
    return {(found.kind, found.name) for found in parse_source(source.encode())}


def only(source: str) -> Found:
    (found,) = parse_source(source.encode())
    return found


# ---- what is seen

TRIL = """\
#include <torch_musa/ops/tril_native.h>
namespace at::musa {

TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {
  if (self.numel() == 0) { return; }
}
}  // namespace at::musa
"""


def test_impl_method_has_place_and_parameter_types() -> None:
    found = only(TRIL)
    assert (found.kind, found.name, found.line, found.column) == ("impl", "MusaTril", 4, 1)
    assert found.params == ("const Tensor&", "int64_t", "const Tensor&")
    assert found.text == "TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result)"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("TORCH_META_FUNC(tril)", "tril"),
        ("TORCH_META_FUNC2(add, Tensor)", "add_Tensor"),
        ("TORCH_PRECOMPUTE_META_FUNC(tril)", "tril"),
        ("TORCH_PRECOMPUTE_META_FUNC2(index, Tensor)", "index_Tensor"),
    ],
)
def test_meta_methods(head: str, name: str) -> None:
    assert names(f"namespace at::musa {{ {head}(const Tensor& self) {{ }} }}") == {("meta", name)}


@pytest.mark.parametrize(
    "source",
    [
        "namespace at::musa { Tensor K(const Tensor& x) { return x; } }",
        "namespace at { namespace musa { Tensor K(const Tensor& x) { return x; } } }",
        "Tensor at::musa::K(const Tensor& x) { return x; }",
        "at::Tensor at::musa::K(const at::Tensor& x) { return x; }",
        "namespace at { Tensor musa::K(const Tensor& x) { return x; } }",
        "namespace at::musa { auto K(Tensor const & x) -> Tensor { return x; } }",
        "namespace at::musa { TORCH_API Tensor K(const Tensor & /*self*/) { return {}; } }",
        'extern "C++" { namespace at::musa { Tensor K(const Tensor& x) { return x; } } }',
        "namespace at::musa {\nREGISTER_DISPATCH(\n    a_stub,\n    &a)\nTensor K(const Tensor& x) { return x; } }",
    ],
)
def test_spellings_of_one_function(source: str) -> None:
    (found,) = [found for found in parse_source(source.encode()) if found.kind == "function"]
    assert (found.name, found.namespace, found.returns, found.params) == ("K", "at::musa", "Tensor", ("const Tensor&",))


@pytest.mark.parametrize(
    "source",
    [
        "namespace at::musa { Tensor K(const Tensor& x); }",
        "namespace at::musa { static Tensor K(const Tensor& x) { return x; } }",
        "namespace at::musa { inline Tensor K(const Tensor& x) { return x; } }",
        "namespace at::musa { namespace { Tensor K(const Tensor& x) { return x; } } }",
        "namespace { namespace at::musa { Tensor K(const Tensor& x) { return x; } } }",
        "namespace at::musa { template <class T> Tensor K(T x) { return {}; } }",
        "namespace at::musa { struct S { Tensor K(const Tensor& x) { return x; } }; }",
        "namespace at::musa::detail { Tensor K(const Tensor& x) { return x; } }",
        "namespace somewhere { Tensor K(const Tensor& x) { return x; } }",
        "Tensor K(const Tensor& x) { return x; }",
        "namespace at::native { __global__ void K(int* x) { } }",
        "namespace at::musa { // Tensor K(const Tensor& x) { return x; }\n }",
        "namespace at::musa { /* Tensor K(const Tensor& x) { return x; } */ }",
        'namespace at::musa { auto text = R"(} Tensor K(const Tensor& x) { return x; })"; }',
        "namespace at::musa {\n#define ALL Tensor K(const Tensor& x) \\\n  { return x; }\n}",
        "namespace at::musa {\n#if 0\nTensor K(const Tensor& x) { return x; }\n#endif\n}",
        "namespace at::musa {\n#if 1\n#else\nTensor K(const Tensor& x) { return x; }\n#endif\n}",
        "namespace at::musa { // REGISTER_DISPATCH(a_stub, &K)\n }",
        "namespace at::musa {\n#define REGISTER_DISPATCH(name, fn) static int name##fn\n}",
    ],
)
def test_not_kernels(source: str) -> None:
    assert names(source) == set()


def test_stub_registrations() -> None:
    source = """
namespace at::native {
REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel);
REGISTER_MUSA_DISPATCH(a_stub, &a)
REGISTER_PRIVATEUSE1_DISPATCH(b_stub, static_cast<b_fn>(&pick<int, float>));
  REGISTER_DISPATCH(
      c_stub,
      &c);
DECLARE_DISPATCH(fn, d_stub)
REGISTER_NO_CPU_DISPATCH(e_stub)
}
"""
    stubs = {found.name: found.line for found in parse_source(source.encode())}
    assert stubs == {"lerp_kernel_tensor_weight": 3, "a_stub": 4, "b_stub": 5, "c_stub": 6}


def test_both_branches_count_but_one_definition_once() -> None:
    source = """
namespace at::musa {
#if MUDNN_VERSION >= 3100
Tensor K(const Tensor& x) { return fast(x); }
Tensor New(const Tensor& x) { return x; }
#else
Tensor K(const Tensor& x) { return slow(x); }
Tensor Old(const Tensor& x) { return x; }
#endif
}
"""
    assert [(found.name, found.line) for found in parse_source(source.encode())] == [("K", 4), ("New", 5), ("Old", 8)]


def test_unbalanced_branches_inside_a_body() -> None:
    source = """
namespace at::musa {
Tensor A(const Tensor& x) {
#ifdef FAST
  if (x.dim() > 1) {
#else
  while (x.dim()) {
#endif
  }
  return x;
}
Tensor B(const Tensor& x) { return x; }
}
"""
    assert names(source) == {("function", "A"), ("function", "B")}


def test_cuda_dialect_bodies() -> None:
    source = """
namespace at::native {
template <typename T> C10_LAUNCH_BOUNDS_1(512) __global__ void fill(T* out, int64_t n) { out[0] = n; }
void go(TensorIteratorBase& iter) {
  AT_DISPATCH_V2(iter.dtype(), "go", AT_WRAP([&] {
    gpu_kernel(iter, [=] GPU_LAMBDA (scalar_t a) -> scalar_t { return a ? a : scalar_t('}'); });
    fill<scalar_t><<<dim3(1), 512, 0, at::cuda::getCurrentCUDAStream()>>>(p, 1'000'000);
  }), AT_EXPAND(AT_ALL_TYPES), kHalf);
}
REGISTER_DISPATCH(go_stub, &go)
}
namespace at::musa {
TORCH_IMPL_FUNC(Go)(const Tensor& self, const Tensor& out) { go(*this); }
}
"""
    assert names(source) == {("function", "go"), ("stub", "go_stub"), ("impl", "Go")}


# ---- properties

_IDENTIFIER = st.from_regex(r"[A-Z][a-z]{1,6}[0-9]?_?", fullmatch=True)
_TYPES = st.sampled_from(["const Tensor&", "Tensor &", "int64_t", "Scalar const&", "std::array<bool, 3>", "bool"])
# Text that looks like what the scan looks for, from which it must not conclude anything.
_NOISE = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "// } Tensor Z(int x) { \n",
        "/* TORCH_IMPL_FUNC(Z)(int) { */",
        '// "unterminated \n',
        "\n#define Z(x) REGISTER_DISPATCH(z_stub, x) \\\n } {\n",
        "\n#include <a/*b>\n",
        "\n#ifdef X\n#endif\n",
    ]
)
_STATEMENT = st.recursive(
    st.sampled_from(
        [
            "f();",
            'auto s = "} // {";',
            "char c = '\\'';",
            "char d = '{';",
            'auto r = R"x( )" } )x";',
            "auto n = 1'000'000;",
            "TORCH_IMPL_FUNC(Z)(int) { }",
            "REGISTER_DISPATCH(z_stub, &z);",
            "x<<<1, 2>>>(y);",
            "// }\n",
        ]
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "if (a < b) {" + " ".join(parts) + "}"),
    max_leaves=6,
)
_BODY = st.lists(_STATEMENT, max_size=4).map(lambda parts: "{ " + " ".join(parts) + " }")


@dataclass(frozen=True)
class Item:
    text: str
    seen: tuple[str, str] | None


@st.composite
def _items(draw: st.DrawFn) -> Item:
    name, body = draw(_IDENTIFIER), draw(_BODY)
    params = ", ".join(f"{kind}{draw(_NOISE)} p{i}" for i, kind in enumerate(draw(st.lists(_TYPES, max_size=4))))
    shapes = {
        "function": Item(f"Tensor {name}({params}) {body}", ("function", name)),
        "tuple": Item(f"std::tuple<Tensor&, Tensor&>\n{name}({params})\n{body}", ("function", name)),
        "impl": Item(f"TORCH_IMPL_FUNC({name})({params}) {body}", ("impl", name)),
        "meta": Item(f"TORCH_META_FUNC({name})\n({params}) {body}", ("meta", name)),
        "stub": Item(f"\nREGISTER_MUSA_DISPATCH({name}, &k)\n", ("stub", name)),
        "semicolon": Item(f"\nREGISTER_DISPATCH({name}, &k<int>);\n", ("stub", name)),
        "static": Item(f"static void {name}({params}) {body}", None),
        "template": Item(f"template <typename T, int N = 3> void {name}({params}) {body}", None),
        "anonymous": Item(f"namespace {{ Tensor {name}({params}) {body} }}", None),
        "struct": Item(f"struct {name} {body};", None),
        "declaration": Item(f"Tensor {name}({params});", None),
        "lambda": Item(f"auto {name} = [](int x) {body};", None),
        "table": Item(f"constexpr int {name}[] = {{1, 2, 3}};", None),
        "dead": Item(f"\n#if 0\nTensor {name}({params}) {body}\n#endif\n", None),
    }
    return shapes[draw(st.sampled_from(sorted(shapes)))]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(_NOISE, _items()), max_size=6), st.sampled_from(["at::musa", "at { namespace musa"]))
def test_scan_finds_exactly_the_kernels(items: list[tuple[str, Item]], namespace: str) -> None:
    source = f"namespace {namespace} {{\n"
    source += "\n".join(noise + item.text for noise, item in items)
    source += "\n}" * namespace.count("namespace") + "\n}\n"
    expected = {item.seen for _, item in items} - {None}
    assert names(source) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("{}()<>;:#'\"\\/*\n aR0_,&=")) | st.binary().map(lambda b: b.decode("latin1")))
def test_any_text_is_scanned_without_an_error(source: str) -> None:
    content = source.encode()
    blanked = skeleton(content)
    assert len(blanked) == len(content)
    assert blanked.count(b"\n") == content.count(b"\n")
    parse_source(content)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("Scalar const &", "const Scalar&"),
        ("const at::Scalar&", "const Scalar&"),
        ("::std::tuple<at::Tensor &,at::Tensor &>", "tuple<Tensor&, Tensor&>"),
        ("const c10::List<::std::optional<at::Tensor>> &", "const List<optional<Tensor>>&"),
        ("c10::IntArrayRef", "ArrayRef<int64_t>"),
        ("at::TensorList", "ArrayRef<Tensor>"),
        ("const char*", "const char*"),
    ],
)
def test_canonical_types(written: str, canonical: str) -> None:
    assert canonical_type(written) == canonical


def test_scanned_definition_equals_the_declaration_that_torchgen_prints() -> None:
    declared = canonical_signature(
        "::std::tuple<at::Tensor &,at::Tensor &> K("
        "const at::Tensor & self, ::std::optional<int64_t> dim=1, at::Tensor & out)"
    )
    found = only(
        "namespace at::musa { std::tuple<Tensor&, Tensor&> K(\n"
        "    Tensor const& self, const std::optional<int64_t> /* by value */ d, at::Tensor& out) { return {}; } }"
    )
    assert (found.returns, found.params) == (declared.returns, declared.params)


# ---- folders and cache


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "project"
    for folder in ("mudnn", "ported/deep", "cpu_fallback"):
        (root / "kernels" / folder).mkdir(parents=True)
    (root / "kernels/mudnn/Tril.cpp").write_text(TRIL)
    (root / "kernels/ported/deep/Lerp.cu").write_text("namespace at::native {\nREGISTER_DISPATCH(lerp_stub, &k)\n}\n")
    (root / "kernels/mudnn/notes.txt").write_text(TRIL)
    return root


def test_family_is_the_folder(tree: Path) -> None:
    index = kernels.scan_kernels(tree)
    assert index.impls["MusaTril"][0].family == "mudnn"
    stub = index.stubs["lerp_stub"][0]
    assert (stub.path, stub.line, stub.family) == ("kernels/ported/deep/Lerp.cu", 2, "ported")
    assert not index.functions


def test_one_kernel_in_two_sources_is_kept_twice(tree: Path) -> None:
    (tree / "kernels/cpu_fallback/Tril.cpp").write_text(TRIL)
    assert [d.path for d in kernels.scan_kernels(tree).impls["MusaTril"]] == [
        "kernels/mudnn/Tril.cpp",
        "kernels/cpu_fallback/Tril.cpp",
    ]


def test_no_kernels_folder_is_an_empty_index(tmp_path: Path) -> None:
    assert kernels.scan_kernels(tmp_path) == kernels.KernelIndex()


def test_unreadable_source_is_an_error_with_its_path(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OpgenError, match="cannot read the kernel source: Permission denied") as raised:
        kernels.scan_kernels(tree)
    assert str(raised.value).startswith(str(tree / "kernels/mudnn/Tril.cpp"))


def test_second_scan_parses_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kernels.scan_kernels(tree)

    def refuse(source: bytes) -> tuple[Found, ...]:
        raise AssertionError("parsed again")

    monkeypatch.setattr(kernels, "parse_source", refuse)
    assert kernels.scan_kernels(tree) == first
    (tree / "kernels/mudnn/Tril.cpp").write_text(TRIL.replace("MusaTril", "Other"))
    with pytest.raises(AssertionError, match="parsed again"):
        kernels.scan_kernels(tree)


@pytest.mark.parametrize("damage", [b"", b"\x80\x04not a pickle", b"cos\nsystem\n."])
def test_damaged_cache_is_no_cache(tree: Path, damage: bytes) -> None:
    first = kernels.scan_kernels(tree)
    for file in cache.cache_dir().iterdir():
        file.write_bytes(damage)
    assert kernels.scan_kernels(tree) == first


def test_unusable_cache_folder_only_costs_time(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kernels.scan_kernels(tree)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert kernels.scan_kernels(tree) == first


def test_a_source_of_many_megabytes_is_not_read(tree: Path) -> None:
    path = tree / "kernels" / "mudnn" / "Large.cpp"
    with path.open("wb") as file:
        file.truncate(kernels.MAX_BYTES + 1)
    with pytest.raises(OpgenError, match="the kernel source is larger than 4 MiB") as raised:
        kernels.scan_kernels(tree)
    assert raised.value.location == Location(str(path))
