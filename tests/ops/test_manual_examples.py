"""The kernel that MUSA's manual prints for its AddTensor example compiles against our headers and computes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opgen.project import find_root
from opgen.upstream import find_torch

# The manual's text, its elided checks filled in. Around it stands only what the manual takes for granted: the headers,
# the namespace and, in place of a registration, an operator of another namespace.
ADD_TENSOR = r"""
#include <mudnn.h>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {

Tensor AddTensor(
const Tensor& self, const Tensor& other, Scalar const& alpha_scalar) {
TORCH_CHECK(self.device().type() == kMUSA, "self must be on musa");
TORCH_CHECK(self.device().type() == other.device().type(), "self and other must be on one device");

TORCH_CHECK(
self.scalar_type() == at::ScalarType::Float, "AddTensor computes in float");

const c10::musa::MUSAGuard guard(self.device());

auto self_contig = self.contiguous();
auto other_contig = at::mul(other, alpha_scalar);
other_contig = other_contig.contiguous();

auto output = at::empty(
infer_size_dimvector(self.sizes(), other.sizes()),
self.options());

muTensor lhs = CreateMUTensor(self_contig);
muTensor rhs = CreateMUTensor(other_contig);
muTensor out = CreateMUTensor(output);

auto& h = GetMudnnHandle();
::musa::dnn::Binary op;
CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Binary::Mode::ADD), "SetMode");
CHECK_MUDNN_STATUS(op.Run(h, out, lhs, rhs), "Run Add.Tensor");

return output;
}

}  // namespace at::musa

TORCH_LIBRARY_FRAGMENT(manual_example, m) {
  m.def("add(Tensor self, Tensor other, Scalar alpha) -> Tensor");
}
TORCH_LIBRARY_IMPL(manual_example, PrivateUse1, m) { m.impl("add", at::musa::AddTensor); }
"""


def _compile(source: Path, library: Path, build: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "a C++ compiler is needed, as for building the project"
    root, torch = find_root(), find_torch().torch
    includes = [root, root / "sdk" / "include"]
    systems = [torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include"]
    flags = ["-shared", "-fPIC", "-O0", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-DNDEBUG"]
    command = [compiler, *flags, *(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in systems)]
    libraries = ["-ltorch_musa", "-lmudnn", "-lmusart", "-ltorch_cpu", "-lc10"]
    command += [str(source), "-o", str(library), f"-L{build / 'lib'}", f"-L{torch / 'lib'}", *libraries]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-6000:]


def test_add_tensor_of_the_manual_compiles_and_computes(tmp_path: Path, device: str) -> None:
    import torch

    if torch.device(device).type != "musa":
        pytest.skip("the example is a kernel for musa")
    from torch_musa._build import find

    build = find(torch.__version__)
    assert build is not None
    source = tmp_path / "AddTensor.cpp"
    source.write_text(ADD_TENSOR, encoding="utf-8")
    library = tmp_path / "libmanual_example.so"
    _compile(source, library, build.folder)
    torch.ops.load_library(str(library))

    a, b = torch.randn(3, 4), torch.randn(4)
    result = torch.ops.manual_example.add(a.to(device), b.to(device), 2)
    torch.testing.assert_close(result.cpu(), torch.add(a, b, alpha=2))
    with pytest.raises(RuntimeError, match="computes in float"):
        torch.ops.manual_example.add(a.double().to(device), b.to(device), 2)
