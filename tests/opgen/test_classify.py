"""Every row of the table of kinds, and what the reason given for it says."""

from __future__ import annotations

import pytest
from generator_cases import classified, index, messages, registrations, upstream

from opgen.classify import Form, Kind


def table(text: str) -> dict[str, tuple[str, str | None, str, str]]:
    return {
        f"{r.op}/{r.dispatch_key}": (r.kind.value, r.form.value if r.form else None, r.cpp_namespace, r.kernel)
        for r in registrations(text)
    }


def test_legacy_group():
    assert table("""\
        - func: lerp.Scalar_out
        - func: lerp.Scalar
        - func: lerp_.Scalar
        """) == {
        "lerp.Scalar_out/PrivateUse1": ("legacy", None, "at::native", "lerp_Scalar"),
        "lerp.Scalar/PrivateUse1": ("legacy", None, "at::native", "lerp_Scalar"),
        "lerp_.Scalar/PrivateUse1": ("legacy", None, "at::native", "lerp_Scalar"),
    }


def test_legacy_meta_group():
    assert table("""\
        - func: tril
        - func: tril_
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        """) == {
        "tril/PrivateUse1": ("legacy_meta", None, "at::musa", "MusaTril"),
        "tril_/PrivateUse1": ("legacy_meta", None, "at::musa", "MusaTril"),
        "tril.out/PrivateUse1": ("legacy_meta", None, "at::musa", "MusaTril"),
    }


@pytest.mark.parametrize(
    "keys", ["structured_inherits: MyMetaBase", "precomputed: [diagonal -> int var]", "structured_inherits: a::Base"]
)
@pytest.mark.parametrize("kernel", ["MusaTril", None])
def test_customized_group(keys: str, kernel: str | None):
    dispatch = f"dispatch: {{PrivateUse1: {kernel}}}" if kernel else ""
    found = registrations(f"- func: tril\n- func: tril.out\n  {keys}\n  {dispatch}")
    assert {r.kind for r in found} == {Kind.CUSTOMIZED}
    assert {r.kernel for r in found} == {kernel or "tril_cuda"}
    assert {r.cpp_namespace for r in found} == {"at::musa"}
    assert keys.split(":")[0] in found[0].reason


def test_base_classes_are_found_where_they_are():
    def base(name: str) -> str | None:
        (found,) = registrations(f"- func: tril.out\n  structured_inherits: {name}\n  dispatch: {{PrivateUse1: K}}")
        assert found.group is not None
        return found.group.out.structured_inherits

    assert base("MyMetaBase") == "at::musa::MyMetaBase"
    assert base("TensorIteratorBase") == "TensorIteratorBase"
    assert base("at::native::Other") == "at::native::Other"


def test_customized_inherits_what_the_entry_does_not_mention():
    (found,) = registrations("""\
        - func: index_copy.out
          structured_inherits: MyMetaBase
          dispatch: {PrivateUse1: K}
        """)
    assert found.group is not None and found.group.out.precomputed is not None
    (found,) = registrations("""\
        - func: index_copy.out
          precomputed: none
          dispatch: {PrivateUse1: K}
        """)
    assert found.kind is Kind.CUSTOMIZED
    assert found.group is not None and found.group.out.precomputed is None


def test_none_where_upstream_has_none_changes_nothing():
    (found,) = registrations("""\
        - func: tril.out
          structured_inherits: none
          precomputed: none
          dispatch: {PrivateUse1: K}
        """)
    assert found.kind is Kind.LEGACY_META


ADD = """\
- func: add.Tensor
  {delegate}
  dispatch: {{PrivateUse1: AddTensor}}
- func: add_.Tensor
  {delegate}
  dispatch: {{PrivateUse1: AddTensor_}}
- func: add.out
  structured: false
  {out}
  dispatch: {{PrivateUse1: AddTensorOut}}
"""


@pytest.mark.parametrize("delegate", ["", "structured_delegate: none", "structured: false"])
@pytest.mark.parametrize("out", ["", "structured_inherits: none", "precomputed: none"])
def test_group_turned_unstructured(delegate: str, out: str):
    found = registrations(ADD.format(delegate=delegate, out=out))
    assert {(r.kind, r.form) for r in found} == {(Kind.UNSTRUCTURED, Form.OWN)}
    assert [r.kernel for r in found] == ["AddTensor", "AddTensor_", "AddTensorOut"]
    assert all("structured: false" in r.reason for r in found)


def test_one_overload_turned_unstructured():
    found = registrations("""\
        - func: tril
          dispatch: {PrivateUse1: Tril}
        - func: tril_
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        """)
    assert [(r.op, r.kind) for r in found] == [
        ("tril", Kind.UNSTRUCTURED),
        ("tril_", Kind.LEGACY_META),
        ("tril.out", Kind.LEGACY_META),
    ]


def test_plain_kernels():
    assert table("""\
        - func: nonzero
          dispatch: {PrivateUse1: Nonzero}
        - func: view_as_real
          dispatch: {PrivateUse1: view_as_real}
        - func: set_.source_Storage_storage_offset
          dispatch: {PrivateUse1: set_storage_cpu_}
        - func: celu.out
          dispatch: {PrivateUse1: CeluOut}
        - func: erfinv
        - func: erfinv.out
          dispatch: {PrivateUse1: cpu_fallback}
        """) == {
        "nonzero/PrivateUse1": ("unstructured", "own", "at::musa", "Nonzero"),
        "view_as_real/PrivateUse1": ("unstructured", "reused", "at::native", "view_as_real"),
        "set_.source_Storage_storage_offset/PrivateUse1": ("unstructured", "reused", "at::native", "set_storage_cpu_"),
        "celu.out/PrivateUse1": ("unstructured", "autogen", "at::musa", "CeluOut"),
        "erfinv/PrivateUse1": ("unstructured", "fallback", "at::musa", "cpu_fallback"),
        "erfinv.out/PrivateUse1": ("unstructured", "fallback", "at::musa", "cpu_fallback"),
    }


def test_other_keys_are_unstructured():
    assert table("""\
        - func: add.Tensor
        - func: add.out
          dispatch:
            PrivateUse1: MusaAdd
            SparsePrivateUse1: add_out_sparse_cpu
            QuantizedPrivateUse1, NestedTensorPrivateUse1: AddOther
            AutogradPrivateUse1: AddAutograd
        - func: sub.Tensor
          dispatch: {SparseCsrPrivateUse1: SubCsr}
        """) == {
        "add.Tensor/PrivateUse1": ("legacy_meta", None, "at::musa", "MusaAdd"),
        "add.out/PrivateUse1": ("legacy_meta", None, "at::musa", "MusaAdd"),
        "add.out/SparsePrivateUse1": ("unstructured", "reused", "at::native", "add_out_sparse_cpu"),
        "add.out/QuantizedPrivateUse1": ("unstructured", "own", "at::musa", "AddOther"),
        "add.out/NestedTensorPrivateUse1": ("unstructured", "own", "at::musa", "AddOther"),
        "add.out/AutogradPrivateUse1": ("unstructured", "own", "at::musa", "AddAutograd"),
        "sub.Tensor/SparseCsrPrivateUse1": ("unstructured", "own", "at::musa", "SubCsr"),
    }


def test_new_operators():
    assert table("""\
        - func: musa::rope(Tensor q, int n=1) -> Tensor
          dispatch: {PrivateUse1: Rope, Meta: rope_meta, AutogradPrivateUse1: RopeAutograd}
        """) == {
        "musa::rope/PrivateUse1": ("unstructured", "new", "at::musa", "Rope"),
        "musa::rope/Meta": ("unstructured", "new", "at::musa", "rope_meta"),
        "musa::rope/AutogradPrivateUse1": ("unstructured", "new", "at::musa", "RopeAutograd"),
    }


def test_device_settings():
    def settings(text: str) -> tuple[str, bool]:
        (found,) = registrations(text)
        return found.function.device_check.name, found.function.device_guard

    own = "- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n"
    reused = "- func: view_as_real\n  dispatch: {PrivateUse1: view_as_real}\n"
    assert settings(own) == ("NoCheck", False)
    assert settings(own + "  device_check: ExactSame\n  device_guard: true") == ("ExactSame", True)
    theirs = upstream().functions["view_as_real"]
    assert settings(reused) == (theirs.device_check.name, theirs.device_guard)
    assert settings(reused + "  device_guard: true") == (theirs.device_check.name, True)
    assert settings("- func: tril.out\n  dispatch: {PrivateUse1: K}") == ("ExactSame", True)
    assert settings("- func: tril.out\n  device_check: NoCheck\n  dispatch: {PrivateUse1: K}") == ("NoCheck", True)


def test_sources_and_families(tmp_path):
    kernels = index(
        tmp_path,
        {
            "mudnn/Tril.cpp": "namespace at::musa {\nTORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, "
            "const Tensor& out) {}\nTensor Nonzero(const Tensor& self) { return self; }\n}",
            "ported/Lerp.cu": "namespace at::native {\nREGISTER_DISPATCH(lerp_kernel_scalar_weight, &k)\n}",
        },
    )
    found, diagnostics = classified(
        """\
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        - func: nonzero
          dispatch: {PrivateUse1: Nonzero}
        - func: lerp.Scalar_out
        - func: view_as_real
          dispatch: {PrivateUse1: view_as_real}
        - func: argmax.out
          dispatch: {PrivateUse1: Nowhere}
        """,
        kernels,
    )
    assert not diagnostics, messages(diagnostics)
    assert [(r.op, r.family, r.source, r.source_line, r.line) for r in found] == [
        ("tril.out", "mudnn", "kernels/mudnn/Tril.cpp", 2, 1),
        ("nonzero", "mudnn", "kernels/mudnn/Tril.cpp", 3, 3),
        ("lerp.Scalar_out", "ported", "kernels/ported/Lerp.cu", 2, 5),
        ("view_as_real", "upstream", None, None, 6),
        ("argmax.out", None, None, None, 8),
    ]


def test_a_kernel_of_ours_beats_upstreams_of_the_same_name(tmp_path):
    entry = "- func: nonzero\n  dispatch: {PrivateUse1: nonzero_cuda}"
    kernels = index(
        tmp_path,
        {"ported/Nonzero.cu": "namespace at::musa { Tensor nonzero_cuda(const Tensor& self) { return self; } }"},
    )
    (found,), diagnostics = classified(entry, kernels)
    assert not diagnostics and found.form is Form.OWN and found.cpp_namespace == "at::musa"
    # The same function in upstream's namespace provides what the wheel lacks.
    kernels = index(
        tmp_path,
        {"ported/Nonzero.cu": "namespace at::native { Tensor nonzero_cuda(const Tensor& self) { return self; } }"},
    )
    (found,), diagnostics = classified(entry, kernels)
    assert not diagnostics and found.form is Form.REUSED and found.family == "ported"


def test_entries_of_other_releases_do_not_exist():
    assert registrations("- func: tril\n  torch: '<2.0'") == ()
