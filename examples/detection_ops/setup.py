"""Builds detection_ops: for the CPU; with FORCE_CUDA=1 (or a GPU in sight) for CUDA; with FORCE_MUSA=1 for MUSA.

FORCE_MUSA=1 python setup.py build_ext --inplace
"""

from __future__ import annotations

import glob
import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

define_macros: list[tuple[str, str | None]] = [("AT_PER_OPERATOR_HEADERS", None)]
extra_compile_args: dict[str, list[str]] = {"cxx": ["-O1"]}
include_dirs: list[str] = []
cmd_class = {"build_ext": BuildExtension}

if os.getenv("FORCE_MUSA", "0") == "1":
    from torch_musa.utils.simple_porting import SimplePorting

    SimplePorting(
        cuda_dir_path="./detection_ops/csrc",
        mapping_rule={
            "_CUH": "_MUH",
            "DETECTION_WITH_CUDA": "DETECTION_WITH_MUSA",
            "#include <ATen/cuda/CUDAContext.h>": '#include "torch_musa/csrc/aten/musa/MUSAContext.h"',
            "#include <c10/cuda/CUDAGuard.h>": '#include "torch_musa/csrc/core/MUSAGuard.h"',
            "::cuda::": "::musa::",
            ".cuh": ".muh",
            ".is_cuda()": ".is_privateuseone()",
        },
    ).run()
    op_files = (
        glob.glob("./detection_ops/csrc_musa/*.cpp")
        + glob.glob("./detection_ops/csrc_musa/cpu/*.cpp")
        + glob.glob("./detection_ops/csrc_musa/cuda/*.mu")
    )
    from torch_musa.testing import get_musa_arch

    define_macros += [("DETECTION_WITH_MUSA", None), ("MUSA_ARCH", str(get_musa_arch()))]
    os.environ["MUSA_ARCH"] = str(get_musa_arch())
    include_dirs.append(os.path.abspath("./detection_ops/csrc_musa/common"))
    extra_compile_args["mcc"] = ["-O1"]
    from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension

    extension = MUSAExtension
    cmd_class = {"build_ext": BuildExtension}
else:
    op_files = glob.glob("./detection_ops/csrc/*.cpp") + glob.glob("./detection_ops/csrc/cpu/*.cpp")
    extension = CppExtension
    if torch.cuda.is_available() or os.getenv("FORCE_CUDA", "0") == "1":
        from torch.utils.cpp_extension import CUDAExtension

        define_macros += [("DETECTION_WITH_CUDA", None)]
        op_files += glob.glob("./detection_ops/csrc/cuda/*.cu")
        include_dirs.append(os.path.abspath("./detection_ops/csrc/common"))
        extension = CUDAExtension

setup(
    name="detection_ops",
    version="0.1.0",
    packages=["detection_ops"],
    ext_modules=[
        extension(
            "detection_ops._C",
            sorted(op_files),
            define_macros=define_macros,
            include_dirs=include_dirs,
            extra_compile_args=extra_compile_args,
        )
    ],
    cmdclass=cmd_class,
)
