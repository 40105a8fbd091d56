"""Warnings for what changes nothing, and none for what the manual tells developers to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from generator_cases import classified, index, messages, specs, upstream

from opgen.backend import MUSA
from opgen.diagnostics import Diagnostics
from opgen.kernels import KernelIndex
from opgen.redundant import warn_redundant
from opgen.upstream import SUPPORTED_RELEASES

ROOT = Path(__file__).resolve().parents[2]


def warnings(text: str, kernels: KernelIndex | None = None) -> Diagnostics:
    kernels = kernels or KernelIndex()
    entries, _ = specs(text)
    found, diagnostics = classified(text, kernels)
    warn_redundant(entries, found, upstream(), kernels, MUSA, None, diagnostics)
    return diagnostics


REDUNDANT = {
    "structured: true where upstream says so": (
        "- func: tril.out\n  structured: true\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:15: warning: 'structured: true' on 'tril.out' changes nothing\n"
        "    upstream's declaration says the same: remove the key",
    ),
    "structured: false where a functional overload names its kernel": (
        "- func: add.Tensor\n  structured: false\n  dispatch: {PrivateUse1: K}\n"
        "- func: add.out\n  dispatch: {PrivateUse1: O}",
        "ops.yaml:2:15: warning: 'structured: false' on 'add.Tensor' changes nothing",
    ),
    "the delegate that upstream names": (
        "- func: lerp.Scalar\n  structured_delegate: lerp.Scalar_out\n- func: lerp.Scalar_out",
        "ops.yaml:2:24: warning: 'structured_delegate: lerp.Scalar_out' on 'lerp.Scalar' changes nothing",
    ),
    "precomputed: none where upstream has none": (
        "- func: tril.out\n  precomputed: none\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:16: warning: 'precomputed: none' on 'tril.out' changes nothing",
    ),
    "structured_inherits: none where upstream has none": (
        "- func: tril.out\n  structured_inherits: none\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:24: warning: 'structured_inherits: none' on 'tril.out' changes nothing",
    ),
    "structured_delegate: none on a plain operator": (
        "- func: nonzero\n  structured_delegate: none\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:24: warning: 'structured_delegate: none' on 'nonzero' changes nothing",
    ),
    "the default check": (
        "- func: nonzero\n  device_check: NoCheck\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: warning: 'device_check: NoCheck' on 'nonzero' changes nothing\n"
        "    it is the default here: remove the key",
    ),
    "the default check of a structured operator": (
        "- func: tril.out\n  device_check: ExactSame\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: warning: 'device_check: ExactSame' on 'tril.out' changes nothing",
    ),
    "the default guard": (
        "- func: nonzero\n  device_guard: false\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: warning: 'device_guard: false' on 'nonzero' changes nothing",
    ),
    "the guard that a structured operator has anyway": (
        "- func: tril.out\n  device_guard: true\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:17: warning: 'device_guard: true' on 'tril.out' changes nothing",
    ),
    "tags of an operator of PyTorch": (
        "- func: nonzero\n  tags: core\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:9: warning: 'tags: core' on 'nonzero' changes nothing\n"
        "    PyTorch's operators have PyTorch's tags: remove the key",
    ),
    "overloads that PyTorch makes anyway": (
        "- func: celu\n  autogen: celu.out\n  dispatch: {PrivateUse1: K}"
        if "celu.out" in {str(n) for n in upstream().functions["celu"].autogen}
        else "- func: bincount\n  autogen: bincount.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:12: warning: 'autogen: ",
    ),
    "autogen of a new operator": (
        "- func: musa::f(Tensor x) -> Tensor\n  autogen: f.out\n  dispatch: {PrivateUse1: K}",
        "ops.yaml:2:12: warning: 'autogen: f.out' on 'musa::f' changes nothing",
    ),
    "a fallback that follows": (
        "- func: erfinv\n  dispatch: {PrivateUse1: cpu_fallback}\n"
        "- func: erfinv.out\n  dispatch: {PrivateUse1: cpu_fallback}",
        "ops.yaml:2:27: warning: 'PrivateUse1: cpu_fallback' on 'erfinv' changes nothing\n"
        "    the out overload's fallback holds for its whole group: remove the key",
    ),
    "a kernel that serves every device": (
        "- func: sum\n  dispatch: {PrivateUse1: sum}",
        "ops.yaml:2:27: warning: kernel 'sum' of 'sum' serves every device already: the entry changes nothing\n"
        "    remove the entry; upstream registers sum as CompositeExplicitAutograd",
    ),
    "a kernel that PyTorch differentiates through": (
        "- func: isclose\n  dispatch: {PrivateUse1: isclose}",
        "ops.yaml:2:27: warning: kernel 'isclose' of 'isclose' serves every device already; "
        "registered for one it loses its gradient\n"
        "    remove the entry: PyTorch differentiates a CompositeImplicitAutograd kernel through\n",
    ),
    "releases that are not supported": (
        '- func: nonzero\n  dispatch: {PrivateUse1: K}\n- func: tril.out\n  torch: "<2.9"\n',
        f"ops.yaml:4:10: warning: 'tril.out' is for PyTorch <2.9, which is none of the supported releases\n"
        f"    supported are {SUPPORTED_RELEASES[0]} to {SUPPORTED_RELEASES[-1]}: remove the entry",
    ),
    "all releases": (
        '- func: nonzero\n  torch: ">=2.9"\n  dispatch: {PrivateUse1: K}',
        "ops.yaml:2:10: warning: 'torch: >=2.9' on 'nonzero' excludes no supported release",
    ),
}


@pytest.mark.parametrize("name", REDUNDANT)
def test_what_changes_nothing_is_warned_about(name: str) -> None:
    text, expected = REDUNDANT[name]
    found = warnings(text)
    assert messages(found).startswith(expected)
    assert (len(found.errors), len(found.warnings)) == (0, 1), messages(found)


TAUGHT = """\
- func: add.Tensor
  structured_delegate: none
  dispatch: {PrivateUse1: AddTensor}
- func: add_.Tensor
  structured_delegate: none
  dispatch: {PrivateUse1: AddTensor_}
- func: add.out
  structured: false
  structured_inherits: none
  dispatch: {PrivateUse1: AddTensorOut}
- func: index_copy.out
  structured: false
  precomputed: none
  dispatch: {PrivateUse1: IndexCopyOut}
- func: nonzero(Tensor self) -> Tensor
  structured: false
  dispatch: {PrivateUse1: Nonzero}
- func: view_as_real
  dispatch: {PrivateUse1: view_as_real}
- func: tril
- func: tril_
- func: tril.out
  structured_inherits: MyMetaBase
  precomputed:
    - diagonal -> int var
  dispatch: {PrivateUse1: MusaTril}
- func: lerp.Scalar_out
- func: lerp.Scalar
"""

# What changes something, with the keys of the entries above that do not.
EFFECTIVE = """\
- func: nonzero
  device_check: ExactSame
  device_guard: true
  torch: ">=2.11"
  dispatch: {PrivateUse1: K}
- func: tril.out
  device_check: NoCheck
  dispatch: {PrivateUse1: K}
- func: bincount
  dispatch: {PrivateUse1: cpu_fallback}
- func: musa::f(Tensor x) -> Tensor
  tags: pointwise
  dispatch: {PrivateUse1: F}
"""


@pytest.mark.parametrize("text", [TAUGHT, EFFECTIVE])
def test_what_the_manual_teaches_or_changes_something_is_not(text: str) -> None:
    assert messages(warnings(text)) == ""


def test_an_implementation_that_no_entry_names(tmp_path: Path) -> None:
    source = """\
        namespace at::musa {
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
        TORCH_IMPL_FUNC(MusaOld)(const Tensor& self, int64_t k, const Tensor& result) {}
        TORCH_IMPL_FUNC(MusaLeft)(const Tensor& self, int64_t k, const Tensor& result) {}
        }
        """
    text = """\
        - func: tril.out
          dispatch: {PrivateUse1: MusaTril}
        - func: triu.out
          torch: "<2.11"
          dispatch: {PrivateUse1: MusaOld}
        """
    kernels = index(tmp_path, {"mudnn/T.cpp": source})
    assert messages(warnings(text, kernels)) == (
        "kernels/mudnn/T.cpp:4:1: warning: no entry names kernel 'MusaLeft'\n"
        "    its class structured_MusaLeft is declared nowhere, so it will not compile:\n"
        "    add an entry with `dispatch: {PrivateUse1: MusaLeft}`, or remove it"
    )
    assert not warnings(text + "        - func: nope\n", kernels).warnings


def test_an_entry_with_an_error_is_told_that_first() -> None:
    found = warnings("- func: nonzero\n  device_check: NoCheck\n  autogen: x.out\n  dispatch: {PrivateUse1: K}")
    assert len(found.errors) == 1 and not found.warnings


def test_supported_releases_are_those_that_the_package_asks_for() -> None:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    found = re.search(r'"torch([^"]*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    asked = SpecifierSet(found[1])
    assert all(asked.contains(release) for release in SUPPORTED_RELEASES)
    minors = [Version(release).minor for release in SUPPORTED_RELEASES]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert not asked.contains(f"2.{minors[0] - 1}.9") and not asked.contains(f"2.{minors[-1] + 1}.0")
