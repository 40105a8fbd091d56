"""How the backend gets into a process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from opgen.targets import built_targets

ROOT = Path(__file__).resolve().parents[2]
RELEASE = torch.__version__.partition("+")[0]


def test_import_torch_is_enough(run_python):
    run_python(
        """
        import torch
        assert torch.musa.is_available()
        assert torch.ones(2, device="musa").sum().item() == 2
        """
    )


def test_import_torch_musa_first(run_python):
    run_python(
        """
        import torch_musa
        import torch
        assert torch.device("musa", 1).type == "musa"
        assert torch_musa._MUSAC._get_allow_tf32() is False
        """
    )


@pytest.mark.needs("two devices")
def test_explicit_import_works_with_autoload_off(run_python):
    run_python(
        """
        import torch
        assert not hasattr(torch, "musa")
        import torch_musa
        assert torch.musa.device_count() == 2
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


def test_import_torch_is_silent_and_works_without_a_build(run_python, tmp_path):
    done = run_python(
        "import torch; print(torch.ones(2).sum().item(), hasattr(torch, 'musa'))", TORCH_MUSA_BUILD_DIR=str(tmp_path)
    )
    assert done.stdout == "2.0 False\n"
    assert done.stderr == ""


def test_import_torch_musa_without_a_build_says_what_to_run(run_python, tmp_path):
    for first in ("", "import torch\n"):
        done = run_python(first + "import torch_musa", check=False, TORCH_MUSA_BUILD_DIR=str(tmp_path))
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: torch_musa is not built for PyTorch " + torch.__version__)
        assert re.search("`opgen build( --target [a-z]+)?`", last) and str(tmp_path) in last


def test_a_broken_build_leaves_torch_usable(run_python, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "_C.so").write_bytes(b"not a library")
    done = run_python("import torch; print(torch.ones(2).sum().item())", TORCH_MUSA_BUILD_DIR=str(tmp_path))
    assert done.stdout == "2.0\n"
    assert "The musa device is not available" in done.stderr and "opgen build" in done.stderr
    done = run_python("import torch_musa", check=False, TORCH_MUSA_BUILD_DIR=str(tmp_path))
    assert done.returncode == 1 and "does not load" in done.stderr


def test_a_word_that_is_no_target_is_refused_with_the_targets(run_python):
    done = run_python("import torch_musa", check=False, TORCH_MUSA_TARGET="nowhere", TORCH_MUSA_BUILD_DIR=None)
    assert "TORCH_MUSA_TARGET=nowhere is not one of host, cuda, musa" in done.stderr.strip().splitlines()[-1]
    done = run_python("import torch", TORCH_MUSA_TARGET="nowhere", TORCH_MUSA_BUILD_DIR=None)
    assert "The musa device is not available: TORCH_MUSA_TARGET=nowhere" in done.stderr


@pytest.mark.skipif("host" not in built_targets(ROOT, RELEASE), reason="nothing is built for the host here")
def test_without_the_device_of_the_target_it_is_said_and_the_host_serves(run_python):
    code = "import torch; print(torch.musa.target(), torch.ones(2, device='musa').sum().item())"
    done = run_python(code, TORCH_MUSA_TARGET="cuda", CUDA_VISIBLE_DEVICES="", TORCH_MUSA_BUILD_DIR=None)
    assert done.stdout == "host 2.0\n"
    assert "TORCH_MUSA_TARGET=cuda, but " in done.stderr and "The target is host instead" in done.stderr
    done = run_python(code, TORCH_MUSA_TARGET="musa", MUSA_HOME="/nowhere", TORCH_MUSA_BUILD_DIR=None)
    assert done.stdout == "host 2.0\n" and "no MUSA toolkit in /nowhere" in done.stderr


def test_device_methods_exist():
    assert torch.ones(1).musa().is_musa
    assert torch.nn.Linear(2, 2).musa().weight.device == torch.device("musa", 0)
    assert torch.ones(1).untyped_storage().musa().device.type == "musa"
    assert torch.accelerator.current_accelerator() == torch.device("musa")
