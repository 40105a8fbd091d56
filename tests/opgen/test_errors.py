"""What a user reads when an entry is wrong: place, fault, remedy, and never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from generator_cases import checked, classified, index, messages, upstream, write_kernels
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgen.cli import main
from opgen.kernels import KernelIndex, scan_classes

VERSION = upstream().torch_version

# Operator list -> everything that is said about it.
FAULTS = {
    "no such operator": (
        "- func: trill\n  dispatch: {PrivateUse1: K}",
        f"ops.yaml:1:9: error: PyTorch {VERSION} has no operator 'trill'\n    did you mean 'tril'?",
    ),
    "out overload missing": (
        "- func: tril\n- func: tril_",
        "ops.yaml:1:9: error: 'tril' belongs to the structured group of 'tril.out', which is not listed\n"
        "    add `- func: tril.out`: the group's other overloads are made from it",
    ),
    "legacy implementation that the wheel lacks": (
        "- func: tril.out",
        "ops.yaml:1:9: error: 'tril.out' names no kernel, but upstream's implementation 'tril_cuda' is for CUDA only: "
        "the installed libtorch does not export it\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define in namespace at::musa:\n"
        "    TORCH_IMPL_FUNC(Kernel)(const at::Tensor & self, int64_t diagonal, const at::Tensor & out)",
    ),
    "reused kernel that the wheel lacks": (
        "- func: nonzero\n  dispatch: {PrivateUse1: nonzero_cuda}",
        "ops.yaml:2:27: error: kernel 'nonzero_cuda' of 'nonzero' is upstream's for CUDA only: "
        "the installed libtorch does not export it\n"
        "    name a kernel of your own and define it in namespace at::musa:\n"
        "    at::Tensor Kernel(const at::Tensor & self)",
    ),
    "half of an unstructured group": (
        "- func: add.Tensor\n- func: add.out\n  structured: false\n  dispatch: {PrivateUse1: AddOut}",
        "ops.yaml:1:9: error: 'add.Tensor' needs a kernel for PrivateUse1: its out overload says 'structured: false'\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define\n"
        "    at::Tensor Kernel(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha)",
    ),
    "out overload unstructured without a kernel": (
        "- func: add.out\n  structured: false",
        "ops.yaml:1:9: error: 'add.out' needs a kernel for PrivateUse1: its out overload says 'structured: false'\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define\n"
        "    at::Tensor & Kernel(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, "
        "at::Tensor & out)",
    ),
    "no delegate and no kernel": (
        "- func: tril\n  structured_delegate: none\n- func: tril.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: 'tril' needs a kernel for PrivateUse1: it says that it does not follow its out overload\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define\n"
        "    at::Tensor Kernel(const at::Tensor & self, int64_t diagonal)",
    ),
    "wrong delegate": (
        "- func: tril\n  structured_delegate: triu.out\n- func: tril.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:24: error: 'tril' delegates to 'tril.out', not to 'triu.out'\n"
        "    write 'structured_delegate: tril.out', 'none', or leave it out",
    ),
    "structured on a functional overload": (
        "- func: tril\n  structured: true\n- func: tril.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:15: error: 'structured: true' belongs to the out overload 'tril.out'\n"
        "    remove it; 'tril' follows 'tril.out'",
    ),
    "base class on a functional overload": (
        "- func: tril\n  structured_inherits: Base\n- func: tril.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:24: error: 'structured_inherits' belongs to the out overload 'tril.out'\n    move it there",
    ),
    "base class on an unstructured out overload": (
        "- func: tril.out\n  structured: false\n  structured_inherits: Base\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:3:24: error: 'structured_inherits' needs a structured operator, but 'tril.out' says "
        "'structured: false'\n    remove one of the two, or write 'structured_inherits: none'",
    ),
    "structured plain operator": (
        "- func: nonzero\n  structured: true\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:15: error: 'structured' on 'nonzero', which is not structured in PyTorch\n    remove 'structured'",
    ),
    "plain operator without a kernel": (
        "- func: nonzero",
        "ops.yaml:1:9: error: 'nonzero' needs a kernel for PrivateUse1: it is not structured\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define\n"
        "    at::Tensor Kernel(const at::Tensor & self)",
    ),
    "composite operator without a kernel": (
        "- func: hstack",
        "ops.yaml:1:9: error: 'hstack' needs a kernel for PrivateUse1: it is not structured\n"
        "    upstream's CompositeImplicitAutograd kernel serves every device: remove the entry, or add "
        "`dispatch: {PrivateUse1: Kernel}` and define\n    at::Tensor Kernel(at::TensorList tensors)",
    ),
    "no guard on a structured operator": (
        "- func: tril.out\n  device_guard: false\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: 'tril.out' is structured: its generated class always guards the device\n"
        "    remove 'device_guard', or make the overload unstructured",
    ),
    "precomputed argument that does not exist": (
        "- func: tril.out\n  precomputed: [diagonl -> int var]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: 'precomputed' replaces 'diagonl', which is no argument of tril.out\n"
        "    did you mean 'diagonal'?",
    ),
    "precomputed that cannot be read": (
        "- func: tril.out\n  precomputed: [diagonal -> nonsense]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: 'nonsense' in 'precomputed' is no type with a name\n    write `- diagonal -> int var`",
    ),
    "precomputed of an unknown type": (
        "- func: tril.out\n  precomputed: [diagonal -> foo var]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:16: error: cannot read 'precomputed': unrecognized type foo",
    ),
    "precomputed of a type that cannot be kept": (
        "- func: tril.out\n  precomputed: [diagonal -> Tensor var]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:16: error: 'precomputed' cannot keep a Tensor: implementations take it by reference",
    ),
    "precomputed name taken": (
        "- func: tril.out\n  precomputed: [diagonal -> int self]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: argument 'self' of the implementation, from 'precomputed', is there twice",
    ),
    "precomputed name that C++ has taken": (
        "- func: tril.out\n  precomputed: ['diagonal -> int a, int class']\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: argument 'class' of the implementation, from 'precomputed', is a keyword of C++",
    ),
    "precomputed twice": (
        "- func: tril.out\n  precomputed:\n    - diagonal -> int a\n    - diagonal -> int b\n"
        "  dispatch: {PrivateUse1: K}",
        "ops.yaml:4:7: error: 'precomputed' replaces 'diagonal' twice\n"
        "    list all its elements in one line: diagonal -> int a, int b",
    ),
    "precomputed that replaces nothing, before the last line": (
        "- func: tril.out\n  precomputed: [int a, diagonal -> int b]\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: 'int a' in 'precomputed' replaces nothing",
    ),
    "operator in PyTorch's namespace": (
        "- func: torch::nonzero(Tensor self) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: namespace 'torch' is PyTorch's\n"
        "    write `- func: nonzero`: operators of PyTorch have no namespace here",
    ),
    "new operator in a namespace of PyTorch's": (
        "- func: prim::mine(Tensor self) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: namespace 'prim' is PyTorch's\n"
        "    define new operators in one of your own: musa::mine(...)",
    ),
    "namespace that PyTorch cannot read": (
        "- func: class::mine(Tensor self) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: PyTorch reserves the word 'class'",
    ),
    "other schema": (
        "- func: nonzero(Tensor self, int k=0) -> Tensor\n  dispatch: {PrivateUse1: K}",
        f"ops.yaml:1:28: error: the schema of 'nonzero' is not the one of PyTorch {VERSION}: ',' instead of ')'\n"
        "    written:  nonzero(Tensor self, int k=0) -> Tensor\n"
        "                                 ^\n"
        "    expected: nonzero(Tensor self) -> Tensor\n"
        "                                 ^",
    ),
    "broken schema": (
        "- func: nonzero(Tensor self\n  dispatch: {PrivateUse1: K}",
        f"ops.yaml:1:9: error: the schema of 'nonzero' is not the one of PyTorch {VERSION}: ')' is missing\n"
        "    written:  nonzero(Tensor self\n"
        "                                 ^\n"
        "    expected: nonzero(Tensor self) -> Tensor\n"
        "                                 ^",
    ),
    "symint name without symint": (
        "- func: nonzero\n  dispatch: {PrivateUse1: nonzero_symint}",
        "ops.yaml:2:27: error: kernel name 'nonzero_symint' promises SymInt arguments, but the schema of 'nonzero' "
        "has none\n    leave '_symint' out of the name",
    ),
    "fallback of a view": (
        "- func: view_as_real\n  dispatch: {PrivateUse1: cpu_fallback}",
        "ops.yaml:2:27: error: 'view_as_real' cannot go through the CPU: it is a view: a copy on the CPU would not "
        "alias its input\n    name a kernel and define it in namespace at::musa:\n"
        "    at::Tensor Kernel(const at::Tensor & self)",
    ),
    "fallback of a factory": (
        "- func: empty_strided\n  dispatch: {PrivateUse1: cpu_fallback}",
        "ops.yaml:2:27: error: 'empty_strided' cannot go through the CPU: it takes no tensor: nothing tells the device",
    ),
    "fallback of a random operator": (
        "- func: bernoulli_.float\n  dispatch: {PrivateUse1: cpu_fallback}",
        "ops.yaml:2:27: error: 'bernoulli_.float' cannot go through the CPU: it is random",
    ),
    "upstream's own key": (
        "- func: nonzero\n  dispatch: {PrivateUse1: K, CPU: L}",
        "ops.yaml:2:35: error: 'nonzero' is PyTorch's operator: its kernel for CPU is PyTorch's, too\n"
        "    an entry may register for PrivateUse1, QuantizedPrivateUse1, SparsePrivateUse1, SparseCsrPrivateUse1, "
        "NestedTensorPrivateUse1, AutogradPrivateUse1",
    ),
    "unknown tag": (
        "- func: nonzero\n  tags: pointwyse\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:9: error: unknown tag 'pointwyse'\n    did you mean 'pointwise'?",
    ),
    "autogen of nothing": (
        "- func: nonzero\n  autogen: nonzero.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:12: error: 'nonzero.out' is not generated from 'nonzero'\n    upstream has: autogen: nothing",
    ),
    "foreach with a device check": (
        "- func: _foreach_neg\n  device_check: ExactSame\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: error: foreach operators may have tensors on several devices: no device check is possible",
    ),
    "new operator without schema": (
        "- func: musa::rope\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: 'musa::rope' defines a new operator and needs its whole schema",
    ),
    "new operator with a broken schema": (
        "- func: musa::rope(Tensr q) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:20: error: unknown type 'Tensr'\n"
        "    musa::rope(Tensr q) -> Tensor\n"
        "               ^^^^^\n"
        "    did you mean 'Tensor'?",
    ),
    "new operator without a kernel": (
        "- func: musa::rope(Tensor q) -> Tensor",
        "ops.yaml:1:9: error: 'musa::rope' needs a kernel for PrivateUse1: it is a new operator\n"
        "    add `dispatch: {PrivateUse1: Kernel}` and define\n    at::Tensor Kernel(const at::Tensor & q)",
    ),
    "new random operator without its tag": (
        "- func: musa::noise(Tensor q, *, Generator? g=None) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:9: error: not a schema: 'noise' is random and lacks the tag nondeterministic_seeded\n"
        "    add `tags: nondeterministic_seeded`",
    ),
    "fallback of a new operator": (
        "- func: musa::rope(Tensor q) -> Tensor\n  dispatch: {PrivateUse1: cpu_fallback}",
        "ops.yaml:2:27: error: 'musa::rope' is new: the CPU has no kernel to fall back to",
    ),
    "new operator with a keyword for an argument": (
        "- func: musa::rope(Tensor class) -> Tensor\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:1:27: error: argument 'class' is a keyword of C++\n"
        "    musa::rope(Tensor class) -> Tensor\n"
        "                      ^^^^^\n"
        "    give the argument another name",
    ),
    "tag like no other": (
        "- func: nonzero\n  tags: zzz\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:9: error: unknown tag 'zzz'\n    known tags: ",
    ),
    "new operator in PyTorch's namespace": (
        "- func: zzyzx_quux(Tensor q) -> Tensor\n  dispatch: {PrivateUse1: K}",
        f"ops.yaml:1:9: error: PyTorch {VERSION} has no operator 'zzyzx_quux'\n"
        "    a new operator needs a namespace of its own: musa::zzyzx_quux(...)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_classification_faults(name: str):
    text, expected = FAULTS[name]
    _, diagnostics = classified(text)
    said = messages(diagnostics)
    assert said.startswith(expected)
    assert len(diagnostics.errors) == 1, said


def test_a_broken_entry_still_counts_as_listed():
    _, diagnostics = classified("- func: tril\n- func: tril.out\n  dispach: {PrivateUse1: K}")
    assert [d.message for d in diagnostics.errors] == ["unknown key 'dispach'"] or all(
        "not listed" not in d.message for d in diagnostics.errors
    )


KERNELS = {
    "mudnn/Tril.cpp": """\
        namespace at::musa {
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
        Tensor Nonzero(const at::Tensor & self) { return self; }
        TORCH_PRECOMPUTE_META_FUNC(triu)(const Tensor& self, int64_t diagonal) { return {}; }
        TORCH_IMPL_FUNC(MusaTriu)(const Tensor& self, int64_t var, const Tensor& result) {}
        }
        """,
    "ported/Lerp.cu": """\
        namespace at::native {
        REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel)
        }
        """,
}


def test_sources_that_fit_are_accepted(tmp_path):
    text = """\
        - func: lerp.Scalar_out
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        - func: triu.out
          precomputed: [diagonal -> int var]
          dispatch: {PrivateUse1: MusaTriu}
        - func: nonzero
          dispatch: {PrivateUse1: Nonzero}
        """
    assert messages(checked(text, index(tmp_path, KERNELS))) == ""


def test_stub_without_a_kernel(tmp_path):
    assert messages(checked("- func: lerp.Tensor_out", index(tmp_path, KERNELS))) == (
        "ops.yaml:1:9: error: Legacy entry 'lerp.Tensor_out' needs a kernel on DispatchStub "
        "'lerp_kernel_tensor_weight' (<ATen/native/Lerp.h>), which no source registers\n"
        "    register one in namespace at::native: REGISTER_MUSA_DISPATCH(lerp_kernel_tensor_weight, &your_kernel)\n"
        "    (REGISTER_DISPATCH in a .cu file), or name an implementation: dispatch: {PrivateUse1: Kernel}"
    )


def test_kernels_that_no_source_defines(tmp_path):
    text = """\
        - func: tril.out
          dispatch: {PrivateUse1: MusaTrill}
        - func: nonzero
          dispatch: {PrivateUse1: SomethingElse}
        - func: triu.out
          structured_inherits: MyMetaBase
          dispatch: {PrivateUse1: MusaTril}
        - func: add.out
          structured_inherits: MyMetaBase
          dispatch: {PrivateUse1: MusaAdd}
        """
    assert messages(checked(text, index(tmp_path, KERNELS))) == (
        "ops.yaml:2:27: error: no source defines kernel 'MusaTrill' for 'tril.out'\n"
        "    did you mean 'MusaTril' (kernels/mudnn/Tril.cpp:2)? Otherwise\n"
        "    define it in namespace at::musa:\n"
        "    TORCH_IMPL_FUNC(MusaTrill)(const at::Tensor & self, int64_t diagonal, const at::Tensor & out)\n"
        "ops.yaml:4:27: error: no source defines kernel 'SomethingElse' for 'nonzero'\n"
        "    define it in namespace at::musa:\n"
        "    at::Tensor SomethingElse(const at::Tensor & self)\n"
        "ops.yaml:8:9: error: no source defines meta function 'add_Tensor' for 'add.out'\n"
        "    define it in namespace at::musa:\n"
        "    TORCH_META_FUNC2(add, Tensor)(const at::Tensor & self, const at::Tensor & other, "
        "const at::Scalar & alpha)\n"
        "ops.yaml:10:27: error: no source defines kernel 'MusaAdd' for 'add.out'\n"
        "    define it in namespace at::musa:\n"
        "    TORCH_IMPL_FUNC(MusaAdd)(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha, "
        "const at::Tensor & out)"
    )


def test_kernel_in_another_namespace(tmp_path):
    kernels = index(
        tmp_path, {"mudnn/N.cpp": "namespace at::native { Tensor Nonzero(const Tensor& self) { return self; } }"}
    )
    assert "    kernels/mudnn/N.cpp:1 defines one in namespace at::native; move it to at::musa, or\n" in messages(
        checked("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}", kernels)
    )


def test_kernel_with_another_signature(tmp_path):
    sources = {
        "mudnn/N.cpp": """\
            namespace at::musa {
            Tensor Nonzero(Tensor& self, bool as_tuple) { return self; }
            TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int k, const Tensor& result) {}
            }
            """
    }
    text = """\
        - func: nonzero
          dispatch: {PrivateUse1: Nonzero}
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        """
    assert messages(checked(text, index(tmp_path, sources))) == (
        "kernels/mudnn/N.cpp:2:1: error: kernel 'Nonzero' has not the signature that 'nonzero' requires: "
        "parameter 1 is 'Tensor&', not 'const Tensor&'\n"
        "    written:  Tensor Nonzero(Tensor& self, bool as_tuple)\n"
        "                             ^^^^^^^^^^^^\n"
        "    required: at::Tensor Nonzero(const at::Tensor & self)\n"
        "                                 ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "kernels/mudnn/N.cpp:3:1: error: kernel 'MusaTril' has not the signature that 'tril.out' requires: "
        "parameter 2 is 'int', not 'int64_t'\n"
        "    written:  TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int k,\n"
        "                                                            ^^^^^\n"
        "              const Tensor& result)\n"
        "    required: TORCH_IMPL_FUNC(MusaTril)(const at::Tensor & self,\n"
        "              int64_t diagonal, const at::Tensor & out)\n"
        "              ^^^^^^^^^^^^^^^^"
    )


# What is written for `tril` with a meta function of its own, what the message ends in, and the text under the carets.
OTHER_SIGNATURES = {
    "TORCH_META_FUNC(tril)(const Tensor& self)": ("parameter 2, 'int64_t', is missing", ")", "int64_t diagonal"),
    "TORCH_META_FUNC(tril)(const Tensor& self, int64_t k, bool b)": ("parameter 3 is too much", "bool b", ")"),
    "TORCH_META_FUNC(tril)(const Tensor& self, const int64_t& k)": (
        "parameter 2 is 'const int64_t&', not 'int64_t'",
        "const int64_t& k",
        "int64_t diagonal",
    ),
    "TORCH_META_FUNC(tril)()": ("parameter 1, 'const Tensor&', is missing", ")", "const at::Tensor & self"),
}


@pytest.mark.parametrize("written", OTHER_SIGNATURES)
def test_meta_function_with_another_signature(written, tmp_path):
    reason, ours, theirs = OTHER_SIGNATURES[written]
    impl = "TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}"
    kernels = index(tmp_path, {"mudnn/N.cpp": f"namespace at::musa {{\n{written} {{}}\n{impl}\n}}\n"})
    text = "- func: tril.out\n  structured_inherits: Base\n  dispatch: {PrivateUse1: MusaTril}"
    head, *lines = messages(checked(text, kernels)).splitlines()
    assert head == (
        "kernels/mudnn/N.cpp:2:1: error: meta function 'tril' has not the signature that 'tril.out' requires: " + reason
    )
    assert [under_carets(lines, i) for i, line in enumerate(lines) if line.strip().startswith("^")] == [ours, theirs]


def under_carets(lines: list[str], number: int) -> str:
    """What line `number`, one of blanks and carets, marks in the line before it."""
    carets = lines[number]
    return lines[number - 1][carets.index("^") : len(carets)]


RETURN_TYPES = {
    "Tensor& Nonzero(const Tensor& self)": "Tensor&",
    "void Nonzero(const Tensor& self)": "void",
    "auto Nonzero(const Tensor& self) -> std::tuple<Tensor, Tensor>": "std::tuple<Tensor, Tensor>",
    "at::Tensor at::musa::Nonzero(const Tensor&, const Tensor&)": "const Tensor&",
}


@pytest.mark.parametrize("written", RETURN_TYPES)
def test_plain_kernel_with_another_type(written, tmp_path):
    kernels = index(tmp_path, {"mudnn/N.cpp": f"namespace at::musa {{\n{written} {{}}\n}}\n"})
    _, *lines = messages(checked("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}", kernels)).splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip().startswith("^")]
    assert len(marks) == 2
    assert under_carets(lines, marks[0]) == RETURN_TYPES[written]


def test_kernel_with_a_default_argument(tmp_path):
    source = """\
        namespace at::musa {
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k = f(1, 2), const Tensor& result) {}
        }
        """
    text = "- func: tril.out\n  dispatch: {PrivateUse1: MusaTril}"
    assert messages(checked(text, index(tmp_path, {"mudnn/T.cpp": source}))) == (
        "kernels/mudnn/T.cpp:2:1: error: kernel 'MusaTril' has a default argument\n"
        "    TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k = f(1, 2),\n"
        "                                                  ^^^^^^^^^^^^^^^^^^^\n"
        "    const Tensor& result)\n"
        "    leave it out: defaults are in the operator's schema"
    )


def test_of_several_overloads_the_nearest_is_shown(tmp_path):
    source = """\
        namespace at::musa {
        Tensor Nonzero(int64_t n) { return {}; }
        Tensor Nonzero(const Tensor& self, int64_t n) { return {}; }
        }
        """
    kernels = index(tmp_path, {"mudnn/N.cpp": source})
    said = messages(checked("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}", kernels))
    assert said.startswith("kernels/mudnn/N.cpp:3:1: error:") and "parameter 2 is too much" in said


def test_kernel_defined_twice(tmp_path):
    one = "namespace at::musa { Tensor Nonzero(const Tensor& self) { return self; } }"
    kernels = index(tmp_path, {"mudnn/A.cpp": one, "mudnn/B.cpp": one})
    said = messages(checked("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}", kernels))
    assert "kernels/mudnn/B.cpp:1:" in said and "error: kernel 'Nonzero' is defined twice" in said
    assert "the other definition is at kernels/mudnn/A.cpp:1" in said


def test_meta_class_with_an_unknown_base(tmp_path):
    (tmp_path / "Bases.h").write_text("struct A { struct Inner {}; }; class C10_EXPORT MyMetaBase final : A {};")
    bases = scan_classes(tmp_path / "Bases.h")
    assert bases == {"A", "MyMetaBase"} and scan_classes(tmp_path / "None.h") is None
    source = """\
        namespace at::musa {
        TORCH_META_FUNC(tril)(const Tensor& self, int64_t k) {}
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
        }
        """
    kernels = index(tmp_path, {"mudnn/T.cpp": source})
    text = "- func: tril.out\n  structured_inherits: {}\n  dispatch: {{PrivateUse1: MusaTril}}"
    for base in ("MyMetaBase", "A", "TensorIteratorBase", "at::TensorIteratorBase"):
        assert messages(checked(text.format(base), kernels, bases)) == ""
    assert messages(checked(text.format("MyMetaBas"), kernels, bases)) == (
        "ops.yaml:2:24: error: no class 'MyMetaBas' in torch_musa/csrc/aten/ops/MetaBases.h\n"
        "    did you mean 'MyMetaBase'? Otherwise define it there in namespace at::musa"
    )


def test_stub_with_two_kernels(tmp_path):
    one = "namespace at::native {\nREGISTER_DISPATCH(lerp_kernel_scalar_weight, &f)\n}\n"
    kernels = index(tmp_path, {"ported/A.cu": one, "ported/B.cu": one.replace("&f", "&g")})
    assert messages(checked("- func: lerp.Scalar_out", kernels)) == (
        "kernels/ported/B.cu:2:1: error: DispatchStub 'lerp_kernel_scalar_weight' has two kernels\n"
        "    the other one is registered at kernels/ported/A.cu:2"
    )


MANUAL = {
    "mudnn/Add.cpp": """\
        #include <mudnn.h>
        namespace at::musa {
        Tensor AddTensor(
            const Tensor& self, const Tensor& other, Scalar const& alpha_scalar) {
          return self;
        }
        Tensor& AddTensor_(Tensor& self, const Tensor& other, Scalar const& alpha_scalar) { return self; }
        Tensor& AddTensorOut(const Tensor& self, const Tensor& other, Scalar const& alpha, Tensor& out) { return out; }
        Tensor Nonzero(const Tensor& self) { return self; }
        } // namespace at::musa
        """,
    "mudnn/Tril.cpp": """\
        namespace at::musa {
        TORCH_PRECOMPUTE_META_FUNC(tril)(const Tensor& self, int64_t diagonal) {
          return TORCH_PRECOMPUTE_STRUCT(tril)().set_var(diagonal);
        }
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t var, const Tensor &result) {
        }} // namespace at::musa
        """,
    "ported/Lerp.cu": """\
        namespace at::native {
        void lerp_tensor_kernel(at::TensorIteratorBase& iter) {}
        void lerp_scalar_kernel(at::TensorIteratorBase& iter, const c10::Scalar& weight) {}
        REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel);
        REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel);
        }
        """,
}


def test_the_manuals_examples_are_without_fault(tmp_path):
    text = """\
        - func: lerp.Scalar_out
        - func: lerp.Scalar
        - func: lerp_.Scalar

        - func: lerp.Tensor_out
        - func: lerp.Tensor
        - func: lerp_.Tensor

        - func: tril
        - func: tril_
        - func: tril.out
          structured_inherits: MyMetaBase
          precomputed:
            - diagonal -> int var
          dispatch:
            PrivateUse1: MusaTril

        - func: nonzero
          dispatch:
            PrivateUse1: Nonzero
        - func: add.Tensor
          dispatch:
            PrivateUse1: AddTensor
        - func: add_.Tensor
          dispatch:
            PrivateUse1: AddTensor_
        - func: add.out
          structured: false
          dispatch:
            PrivateUse1: AddTensorOut
        - func: view_as_real
          dispatch:
            PrivateUse1: view_as_real
        """
    assert messages(checked(text, index(tmp_path, MANUAL))) == ""


def run(capsys, *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in args])
    captured = capsys.readouterr()
    code = caught.value.code
    return (code if isinstance(code, int) else 0), captured.out, captured.err


def test_gen_with_errors_writes_nothing(tmp_path, capsys):
    yaml = tmp_path / "ops.yaml"
    yaml.write_text("- func: trill\n- func: nonzero\n  dispatch: {PrivateUse1: Missing}\n- func: tril\n")
    kernels = write_kernels(tmp_path, KERNELS)
    code, out, err = run(capsys, "gen", "--yaml", yaml, "--kernels", kernels, "--out", tmp_path / "out")
    assert (code, out) == (1, "")
    assert [line.split(": error:")[0] for line in err.splitlines() if ": error:" in line] == [
        f"{yaml}:1:9",
        f"{yaml}:3:27",
        f"{yaml}:4:9",
    ]
    assert err.endswith("3 errors; nothing was written\n")
    assert not (tmp_path / "out").exists()
    assert run(capsys, "check", "--yaml", yaml, "--kernels", kernels)[0] == 1


def test_check_without_errors(tmp_path, capsys):
    yaml = tmp_path / "ops.yaml"
    yaml.write_text("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n")
    nonzero = "namespace at::musa { Tensor Nonzero(const at::Tensor & self) { return self; } }"
    kernels = write_kernels(tmp_path, {"mudnn/Nonzero.cpp": nonzero})
    code, out, err = run(capsys, "check", "--yaml", yaml, "--kernels", kernels)
    assert (code, err) == (0, "")
    assert out.endswith("1 entry, 1 registration, no errors\n")


def test_a_missing_list_is_one_line(tmp_path, capsys):
    for verb in ("gen", "check"):
        code, _, err = run(capsys, verb, "--yaml", tmp_path / "none.yaml")
        assert code == 1
        assert err == f"{tmp_path / 'none.yaml'}: error: no such operator list\n    name another one with --yaml FILE\n"


def test_a_missing_kernel_folder_is_told_as_such(tmp_path, capsys):
    yaml = tmp_path / "ops.yaml"
    yaml.write_text("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n")
    for verb in ("gen", "check"):
        code, _, err = run(capsys, verb, "--yaml", yaml, "--kernels", tmp_path / "none")
        assert code == 1
        assert err.startswith(f"{tmp_path / 'none'}: error: no such folder with kernel sources\n    name the folder")


@pytest.mark.parametrize(
    "args",
    [
        ["gen", "--out", ""],
        ["gen", "--yaml", ""],
        ["check", "--kernels", ""],
        ["list", "--yaml", ""],
        ["coverage", "--write", ""],
        ["port", "kernels", "--out", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_not_the_working_folder(args, tmp_path, capsys, monkeypatch):
    """What an unset shell variable leaves of `--out "$OUT"`."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *args)
    assert code == 2 and "the empty string names no file or folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["kernels"]


def test_a_working_folder_that_is_gone(tmp_path, capsys, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(capsys, "check") == (1, "", "error: the working folder no longer exists\n    change to another folder\n")


@pytest.mark.parametrize("verb", ["list", "coverage", "check"])
def test_a_full_disk_behind_standard_output(verb):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "opgen.cli", verb]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr


def test_help_has_examples_and_typos_are_answered(capsys):
    for args in (["--help"], ["gen", "--help"], ["check", "--help"]):
        code, out, _ = run(capsys, *args)
        assert code == 0 and "Example: opgen " in out
    code, _, err = run(capsys, "covrage")
    assert code == 2 and "did you mean 'coverage'?" in err


_words = st.sampled_from(
    [
        "func",
        "dispatch",
        "structured",
        "structured_delegate",
        "structured_inherits",
        "precomputed",
        "device_check",
        "device_guard",
        "autogen",
        "tags",
        "torch",
        "PrivateUse1",
        "SparsePrivateUse1",
        "AutogradPrivateUse1",
        "CPU",
        "add.Tensor",
        "add.out",
        "add_.Tensor",
        "tril",
        "tril.out",
        "nonzero",
        "view_as_real",
        "celu.out",
        "musa::f(Tensor(x)",
        "musa::f(Tensor(a!)?x=None)->()",
        "none",
        "true",
        "false",
        "NoCheck",
        "ExactSame",
        "K",
        "cpu_fallback",
        "nonzero_cuda",
        "K_symint",
        "int",
        "Base",
    ]
)
_values = st.one_of(
    _words,
    st.lists(_words, max_size=3).map(lambda words: "[" + ", ".join(words) + "]"),
    st.dictionaries(_words, _words, max_size=3).map(
        lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + "}"
    ),
    st.tuples(_words, _words).map(lambda pair: f"[{pair[0]} -> int {pair[1]}]"),
)
_entries = st.dictionaries(_words, _values, max_size=5).map(
    lambda keys: "- " + "\n  ".join([f"func: {keys.pop('func', 'add.out')}", *(f"{k}: {v}" for k, v in keys.items())])
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_entries, min_size=1, max_size=5).map("\n".join))
def test_any_list_is_classified_or_refused(text: str):
    diagnostics = checked(text, KernelIndex())
    registrations, again = classified(text)
    assert registrations or (diagnostics.errors and again.errors)


@pytest.fixture
def loaded_upstream(monkeypatch):
    """Load PyTorch's catalogue once, not once for each example."""
    monkeypatch.setattr("opgen.upstream.load_upstream", lambda install=None: upstream())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.one_of(st.binary(max_size=120), st.text(max_size=120).map(str.encode), _entries.map(str.encode)))
def test_the_command_survives_any_bytes(raw: bytes, tmp_path: Path, capsys, loaded_upstream):
    yaml = tmp_path / "ops.yaml"
    yaml.write_bytes(raw)
    code, out, err = run(capsys, "check", "--yaml", yaml, "--kernels", tmp_path)
    assert code in (0, 1)
    assert "Traceback" not in out + err
    assert (code == 0) == ("error" not in err)


def test_what_a_list_contains_neither_breaks_the_line_nor_reaches_the_terminal(tmp_path, capsys):
    yaml = tmp_path / "ops.yaml"
    yaml.write_text('- func: "tril\\nout"\n- func: "\\e[31mx"\n- func: "a\\u202Eb"\n- func: ' + "n" * 100_000 + "\n")
    code, _, err = run(capsys, "check", "--yaml", yaml, "--kernels", tmp_path)
    assert code == 1
    assert all(line.isprintable() and len(line) < 300 for line in err.splitlines())
    assert all(escaped in err for escaped in (r"tril\nout", r"\x1b[31mx", r"a\u202eb"))


def test_the_name_of_several_overloads_is_answered_with_them(tmp_path, capsys):
    yaml = tmp_path / "ops.yaml"
    yaml.write_text("- func: add\n- func: tril.default\n")
    _, _, err = run(capsys, "check", "--yaml", yaml, "--kernels", tmp_path)
    assert "name each one: add.Scalar" in err and "did you mean 'tril'?" in err


def test_a_folder_of_kernels_that_cannot_be_read_is_one_error(tmp_path, monkeypatch, capsys):
    def refused(folder, onerror):
        onerror(PermissionError(13, "Permission denied", str(folder)))
        return iter(())

    monkeypatch.setattr("opgen.kernels.os.walk", refused)
    yaml = tmp_path / "ops.yaml"
    yaml.write_text("- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n")
    code, _, err = run(capsys, "check", "--yaml", yaml, "--kernels", write_kernels(tmp_path, KERNELS))
    assert code == 1 and err.count("error:") == 1 and "Permission denied" in err


@pytest.mark.parametrize("verb", ["list", "coverage", "check", "explain tril"])
def test_closed_standard_output_is_no_traceback(verb):
    command = f"{sys.executable} -m opgen.cli {verb} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
