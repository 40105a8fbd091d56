"""What libtorch exports is read from the library, and an entry that needs something else is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from generator_cases import classified, messages
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen import cache
from opgen.libtorch import Exports, load_exports, read_exports
from opgen.upstream import TorchInstall, find_torch

VIEW = "_ZN2at6native12view_as_realERKNS_6TensorE"
IMPL = "_ZN2at6native22structured_lerp_Scalar4implERKNS_6TensorES4_RKN3c106ScalarES4_"
OTHER = "_ZN2at3mulERKNS_6TensorES2_"


def elf(defined: list[str], undefined: list[str] = []) -> bytes:  # noqa: B006
    """The smallest shared library image with these symbols: header, string table, symbol table, section headers."""
    strings = b"\0"
    symbols = b""
    for name in (*defined, *undefined):
        symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 0, int(name in defined), 0, 0)
        strings += name.encode() + b"\0"
    at = 64 + len(strings)
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at, len(symbols), 2, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(strings), 0, 0, 1, 0)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at + len(symbols), 0, 64, 0, 0, 64, 3, 0)
    return header + strings + symbols + sections


def test_defined_functions_and_impl_methods_are_exports():
    exports = read_exports(elf([VIEW, IMPL, OTHER], ["_ZN2at6native7nonzeroERKNS_6TensorE"]))
    assert exports == Exports(frozenset({"view_as_real"}), frozenset({"structured_lerp_Scalar"}))


def test_a_name_that_begins_alike_is_another_name():
    exports = read_exports(elf(["_ZN2at6native7nonzeroERKNS_6TensorE", "_ZN2at6native12nonzero_cudaERKNS_6TensorE"]))
    assert exports is not None and exports.functions == {"nonzero", "nonzero_cuda"}
    nested = read_exports(elf([VIEW, "_ZN2at6native12_GLOBAL__N_14evilEv"]))
    assert nested is not None and nested.functions == {"view_as_real"}


IMAGE = elf([VIEW, IMPL])


@settings(max_examples=400, deadline=None)
@given(
    st.binary(max_size=200)
    | st.binary(max_size=200).map(lambda rest: b"\x7fELF\x02\x01" + rest)
    | st.lists(st.tuples(st.integers(0, len(IMAGE) - 1), st.integers(0, 255)), max_size=6).map(
        lambda edits: bytes(dict(edits).get(i, byte) for i, byte in enumerate(IMAGE))
    )
    | st.integers(0, len(IMAGE)).map(lambda end: IMAGE[:end])
)
def test_any_bytes_are_exports_or_none(image: bytes):
    exports = read_exports(image)
    assert exports is None or exports.functions


def test_the_installed_library():
    exports = load_exports(find_torch())
    if exports is None:
        pytest.skip("this PyTorch has no ELF library")
    assert {"view_as_real", "nonzero_cpu", "as_strided_tensorimpl"} <= exports.functions
    assert "nonzero_cuda" not in exports.functions
    assert {"structured_lerp_Scalar", "structured_lerp_Tensor"} <= exports.impls
    assert "structured_tril_cuda" not in exports.impls


def install(root: Path) -> TorchInstall:
    (root / "lib").mkdir(exist_ok=True)
    return replace(find_torch(), torch=root)


def test_headers_without_a_library_have_no_exports(tmp_path):
    assert load_exports(install(tmp_path)) is None
    (tmp_path / "lib" / "libtorch_cpu.so").write_bytes(b"")
    assert load_exports(install(tmp_path)) is None
    (tmp_path / "lib" / "libtorch_cpu.so").write_bytes(b"MZ no ELF")
    assert load_exports(install(tmp_path)) is None


def test_exports_are_read_once_for_each_library(tmp_path, monkeypatch):
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    here = install(tmp_path)
    here.library.write_bytes(elf([VIEW]))
    first = load_exports(here)
    with monkeypatch.context() as patch:
        patch.setattr("opgen.libtorch.read_exports", lambda image: pytest.fail("read again"))
        assert load_exports(here) == first
    here.library.write_bytes(elf([VIEW, IMPL]))
    again = load_exports(here)
    assert again is not None and again.impls == {"structured_lerp_Scalar"}
    assert cache.cache_dir() == tmp_path / "cache"


NOTHING = Exports(frozenset({"other"}), frozenset())


def test_a_reused_kernel_that_libtorch_lacks_is_refused():
    text = "- func: view_as_real\n  dispatch: {PrivateUse1: view_as_real}"
    found, diagnostics = classified(text, exports=NOTHING)
    assert not found
    assert messages(diagnostics) == (
        "ops.yaml:2:27: error: kernel 'view_as_real' of 'view_as_real' is upstream's for CPU, CUDA, MPS, Meta: "
        "the installed libtorch does not export it\n"
        "    name a kernel of your own and define it in namespace at::musa:\n"
        "    at::Tensor Kernel(const at::Tensor & self)"
    )
    found, diagnostics = classified(text, exports=Exports(frozenset({"view_as_real"}), frozenset()))
    assert [r.kernel for r in found] == ["view_as_real"] and not diagnostics


def test_a_kernel_listed_for_cuda_that_libtorch_has_all_the_same_can_be_reused():
    text = "- func: nonzero\n  dispatch: {PrivateUse1: nonzero_cuda}"
    assert classified(text)[1].errors
    found, diagnostics = classified(text, exports=Exports(frozenset({"nonzero_cuda"}), frozenset()))
    assert [r.kernel for r in found] == ["nonzero_cuda"] and not diagnostics


def test_a_legacy_implementation_that_libtorch_lacks_is_refused():
    text = "- func: lerp.Scalar_out"
    _, diagnostics = classified(text, exports=NOTHING)
    assert messages(diagnostics).startswith(
        "ops.yaml:1:9: error: 'lerp.Scalar_out' names no kernel, but upstream's implementation 'lerp_Scalar' is for "
        "CPU, CUDA"
    )
    assert "the installed libtorch does not export it" in messages(diagnostics)
    found, diagnostics = classified(text, exports=Exports(frozenset({"x"}), frozenset({"structured_lerp_Scalar"})))
    assert [r.kernel for r in found] == ["lerp_Scalar"] and not diagnostics
