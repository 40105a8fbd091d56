"""Sources of operators ask of the toolkit what the vendor's has; what the stand-in adds, only where it is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch.utils.cpp_extension import include_paths

ROOT = Path(__file__).resolve().parents[2]
VENDORS = {"mudnn.h", "murand.h", "murand_kernel.h", "musa.h", "musa_bf16.h", "musa_fp16.h", "musa_runtime.h"}
"""The toolkit's public headers (those that torch_musa and ports of CUDA sources include)."""
STAND_IN = {path.name for path in (ROOT / "sdk/include").glob("*.h")} - VENDORS
# Of the host alone.
OWN = "torch_musa/csrc/porting_host"


def test_headers_of_the_stand_in_alone_are_included_only_where_they_are():
    assert STAND_IN, "nothing to look for"
    for folder in ("kernels", "torch_musa/csrc"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in {".h", ".cpp", ".cu", ".cuh", ".muh"} or OWN in str(path):
                continue
            text = path.read_text()
            for name in STAND_IN & set(re.findall(r'#include [<"]([\w/.]+)[>"]', text)):
                assert f"__has_include(<{name}>)" in text, f"{path.relative_to(ROOT)} includes {name}"


@pytest.mark.build
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_attention_compiles_against_a_toolkit_without_seeded_attention(tmp_path):
    for path in (ROOT / "sdk/include").iterdir():
        if path.name != "mudnn_seeded_attention.h":
            (tmp_path / path.name).symlink_to(path)
    release = torch.__version__.partition("+")[0]
    folders = [ROOT, ROOT / f"generated/torch{release}/include", ROOT / "torch_musa/csrc/porting", tmp_path]
    command = ["g++", "-fsyntax-only", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-DNDEBUG", "-w"]
    command += [f"-I{folder}" for folder in folders]
    command += [word for folder in include_paths() for word in ("-isystem", folder)]
    done = subprocess.run([*command, ROOT / "kernels/mudnn/Attention.cpp"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
