"""Which targets a machine can build and run: made-up trees in place of toolkits, drivers and PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.build import Plan, buildable, command
from opgen.device_options import DeviceOptions
from opgen.diagnostics import Diagnostics
from opgen.project import Project
from opgen.targets import Machine, built_targets, choose, target_of_build, torch_cuda


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def machine(root: Path, torch: str | None = "13.0", **environment: str) -> Machine:
    return Machine(torch, {"PATH": str(root / "usr/bin"), **environment}, root)


def with_gpu(root: Path) -> None:
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev/nvidia0").write_text("")
    (root / "dev/nvidiactl").write_text("")


# ---- what is there ----


def test_a_bare_machine_has_the_host_alone(tmp_path: Path) -> None:
    bare = machine(tmp_path)
    assert bare.cannot_build("host") is None and bare.cannot_run("host") is None
    assert "no nvcc on PATH" in str(bare.cannot_build("cuda"))
    assert "no NVIDIA GPU" in str(bare.cannot_run("cuda"))
    assert "MUSA_HOME is not set" in str(bare.cannot_build("musa"))
    assert "MUSA_HOME is not set" in str(bare.cannot_run("musa"))


def test_nvcc_is_that_of_cuda_home_then_of_path_then_the_usual_one(tmp_path: Path) -> None:
    usual = program(tmp_path / "usr/local/cuda/bin/nvcc")
    assert machine(tmp_path).nvcc() == usual
    on_path = program(tmp_path / "usr/bin/nvcc")
    assert machine(tmp_path).nvcc() == on_path
    own = program(tmp_path / "opt/cuda/bin/nvcc")
    assert machine(tmp_path, CUDA_HOME=str(tmp_path / "opt/cuda")).nvcc() == own
    assert machine(tmp_path, CUDA_PATH=str(tmp_path / "opt/cuda")).nvcc() == own


def test_a_cuda_home_without_nvcc_is_named_and_nothing_else_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "usr/bin/nvcc")
    wrong = machine(tmp_path, CUDA_HOME="/opt/nothing")
    assert wrong.nvcc() is None
    assert "no nvcc in /opt/nothing/bin, which CUDA_HOME names" in str(wrong.cannot_build("cuda"))


@pytest.mark.parametrize("device", ["nvidia0", "nvidia7", "dxg"])
def test_a_gpu_is_one_that_the_driver_shows(tmp_path: Path, device: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").write_text("")
    assert machine(tmp_path).cannot_run("cuda") is not None
    (tmp_path / "dev" / device).write_text("")
    assert machine(tmp_path).cannot_run("cuda") is None


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_gpus_are_not_there(tmp_path: Path, value: str) -> None:
    with_gpu(tmp_path)
    hidden = machine(tmp_path, CUDA_VISIBLE_DEVICES=value)
    assert f"CUDA_VISIBLE_DEVICES={value} hides all" in str(hidden.cannot_run("cuda"))
    assert machine(tmp_path, CUDA_VISIBLE_DEVICES="1").cannot_run("cuda") is None


def test_a_pytorch_without_cuda_can_neither_build_nor_run_it(tmp_path: Path) -> None:
    with_gpu(tmp_path)
    program(tmp_path / "usr/bin/nvcc")
    for reason in (machine(tmp_path, None).cannot_build("cuda"), machine(tmp_path, None).cannot_run("cuda")):
        assert "build without CUDA" in str(reason)


def test_the_musa_toolkit_is_that_of_musa_home_then_the_usual_then_that_of_the_mcc_on_path(tmp_path: Path) -> None:
    compiler = program(tmp_path / "opt/toolkit/bin/mcc")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/mcc").symlink_to(compiler)
    assert machine(tmp_path).musa_home() == tmp_path / "opt/toolkit"
    program(tmp_path / "usr/local/musa/bin/mcc")
    assert machine(tmp_path).musa_home() == tmp_path / "usr/local/musa"
    program(tmp_path / "home/musa/bin/mcc")
    assert machine(tmp_path, MUSA_HOME=str(tmp_path / "home/musa")).musa_home() == tmp_path / "home/musa"


def test_a_musa_home_without_a_compiler_is_named_and_nothing_else_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "usr/local/musa/bin/mcc")
    wrong = machine(tmp_path, MUSA_HOME="/opt/nothing")
    assert wrong.musa_home() is None
    assert "no MUSA toolkit in /opt/nothing, which MUSA_HOME names" in str(wrong.cannot_build("musa"))


# ---- which is taken ----


def test_the_best_that_is_built_and_present_is_taken(tmp_path: Path) -> None:
    everything = ("host", "cuda", "musa")
    assert choose(machine(tmp_path), everything).target == "host"
    with_gpu(tmp_path)
    assert choose(machine(tmp_path), everything).target == "cuda"
    program(tmp_path / "usr/local/musa/bin/mcc")
    assert choose(machine(tmp_path), everything).target == "musa"
    assert choose(machine(tmp_path), ("host", "cuda")).target == "cuda"
    assert choose(machine(tmp_path), ("host",)).target == "host"
    assert choose(machine(tmp_path), ()).target == "host"


def test_the_variable_wins_over_what_is_built(tmp_path: Path) -> None:
    with_gpu(tmp_path)
    assert choose(machine(tmp_path, TORCH_MUSA_TARGET="host"), ("host", "cuda")).target == "host"
    assert choose(machine(tmp_path, TORCH_MUSA_TARGET="cuda"), ("host",)).target == "cuda"
    assert choose(machine(tmp_path, TORCH_MUSA_TARGET=""), ("host", "cuda")).target == "cuda"


def test_a_target_that_is_named_but_not_here_gives_way_to_the_host_with_a_note(tmp_path: Path) -> None:
    choice = choose(machine(tmp_path, TORCH_MUSA_TARGET="cuda"), ("host", "cuda"))
    assert choice.target == "host"
    assert choice.note == (
        "TORCH_MUSA_TARGET=cuda, but no NVIDIA GPU: the driver shows none in /dev (nvidia-smi says more). "
        "The target is host instead"
    )


def test_a_word_that_is_no_target_is_refused_with_the_targets(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="TORCH_MUSA_TARGET=npu is not one of host, cuda, musa"):
        choose(machine(tmp_path, TORCH_MUSA_TARGET="npu"), ("host",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", "13.0"),
        ("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n", None),
        ("cuda = '12.8'\n", "12.8"),
        ("", None),
    ],
)
def test_the_cuda_of_a_pytorch_is_read_from_its_version_file(tmp_path: Path, text: str, expected: str | None) -> None:
    (tmp_path / "version.py").write_text(text)
    assert torch_cuda(tmp_path) == expected


def test_a_build_says_what_it_is_for_whatever_its_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "host-torch2.13.0"
    folder.mkdir()
    assert target_of_build(folder) == "host"
    (folder / "target").write_text("cuda\n")
    assert target_of_build(folder) == "cuda"
    assert target_of_build(tmp_path) is None


def test_what_is_built_is_what_has_an_extension_for_that_release(tmp_path: Path) -> None:
    for name in ("host-torch2.13.0", "cuda-torch2.13.0", "musa-torch2.11.0", "host-torch2.11.0/lib/_C.so"):
        (tmp_path / "build" / name).mkdir(parents=True)
    for name in ("cuda-torch2.13.0", "musa-torch2.11.0"):
        program(tmp_path / "build" / name / "lib/_C.so")
    assert built_targets(tmp_path, "2.13.0") == {"cuda"}
    assert built_targets(tmp_path, "2.11.0") == {"musa"}
    assert built_targets(tmp_path, "2.14.0") == frozenset()


# ---- opgen build ----


def plan(tmp_path: Path, target: str, device: DeviceOptions, toolkit: Path | None) -> Plan:
    return Plan(Project(tmp_path), tmp_path / "torch", "2.11.0", target, 1, toolkit=toolkit, device=device)


def own(plan: Plan) -> list[str]:
    """The definitions that only this target has."""
    host = Plan(plan.project, plan.torch_dir, plan.torch_version, plan.target, plan.jobs)
    common = set(Plan(**{**vars(host), "target": "host"}).cmake_arguments("cmake", "ninja"))
    mine = plan.cmake_arguments("cmake", "ninja")
    return [word for word in mine if word not in common and not word.startswith((str(plan.folder), "-DOPGEN_TARGET"))]


def test_cuda_is_configured_with_its_compiler_and_cards(tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    assert own(plan(tmp_path, "cuda", DeviceOptions(), nvcc)) == [
        f"-DCMAKE_CUDA_COMPILER={nvcc}",
        "-DCMAKE_CUDA_ARCHITECTURES=native",
    ]
    assert own(plan(tmp_path, "cuda", DeviceOptions(("80", "90")), nvcc))[1] == "-DCMAKE_CUDA_ARCHITECTURES=80;90"


def test_musa_is_configured_with_its_toolkit_chips_and_precision(tmp_path: Path) -> None:
    home = tmp_path / "musa"
    assert own(plan(tmp_path, "musa", DeviceOptions(), home)) == [
        f"-DMUSA_HOME={home}",
        "-DOPGEN_MUSA_ARCH=31",
        "-DOPGEN_FP64=OFF",
    ]
    assert own(plan(tmp_path, "musa", DeviceOptions(("21", "22"), fp64=True, asan=True), home)) == [
        f"-DMUSA_HOME={home}",
        "-DOPGEN_MUSA_ARCH=21;22",
        "-DOPGEN_FP64=ON",
        "-DOPGEN_ASAN=ON",
    ]


def test_without_the_compiler_it_is_said_and_the_host_is_built(tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    assert buildable("cuda", machine(tmp_path), diagnostics) == "host"
    assert str(next(iter(diagnostics))) == (
        "warning: --target cuda: no nvcc on PATH or in /usr/local/cuda/bin; set CUDA_HOME where the CUDA toolkit is "
        "elsewhere\n    building for the host instead"
    )
    assert buildable("host", machine(tmp_path), diagnostics) == "host" and len(list(diagnostics)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "31"], "--arch is for the targets cuda and musa"),
        (["--fp64"], "--fp64 is for the target musa"),
        (["--target", "cuda", "--fp64"], "--fp64 is for the target musa"),
        (["--target", "musa", "--arch", "mp_22;toaster"], "'toaster' is no architecture"),
        (["--target", "musa", "--arch", ""], "is no architecture"),
    ],
)
def test_options_of_another_target_are_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2 and message in " ".join(result.output.split()), result.output


def test_importing_targets_needs_no_pytorch() -> None:
    import subprocess

    code = "import opgen.targets, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
