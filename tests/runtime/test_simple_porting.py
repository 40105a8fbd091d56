"""torch_musa.utils.simple_porting: the manual's interface to the port."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from search_path import with_path

from opgen.architectures import architecture
from opgen.diagnostics import OpgenError
from torch_musa.testing import get_musa_arch
from torch_musa.utils import simple_porting
from torch_musa.utils.simple_porting import SimplePorting

ROOT = Path(__file__).parents[2]
# The manual's script for mmcv, as printed.
MANUAL = {
    "_CU_H_": "_MU_H_",
    "_CUH": "_MUH",
    "__NVCC__": "__MUSACC__",
    "MMCV_WITH_CUDA": "MMCV_WITH_MUSA",
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF": "AT_DISPATCH_FLOATING_TYPES",
    "#include <ATen/cuda/CUDAContext.h>": '#include "torch_musa/csrc/aten/musa/MUSAContext.h"',
    "#include <c10/cuda/CUDAGuard.h>": '#include "torch_musa/csrc/core/MUSAGuard.h"',
    "::cuda::": "::musa::",
    "/cuda/": "/musa/",
    ", CUDA,": ", PrivateUse1,",
    ".cuh": ".muh",
    ".is_cuda()": ".is_privateuseone()",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "csrc/pytorch/nms.cpp": "REGISTER_DEVICE_IMPL(nms_impl, CUDA, nms_cuda);\n",
        "csrc/pytorch/cuda/nms_cuda.cu": '#include "nms_kernel.cuh"\n#include <c10/cuda/CUDAGuard.h>\n'
        "at::cuda::CUDAGuard guard(d); // at::cuda\n",
        "csrc/common/cuda/nms_kernel.cuh": "#ifndef NMS_CUH\n#define NMS_CUH\n#ifdef __NVCC__\n#endif\n#endif\n",
        "csrc/common/mlu/x.cpp": "cudaNope();\n",
        "csrc/common/hand.muh": "cudaStream_t by_hand;\n",
        "csrc/notes.txt": "cudaMalloc\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ported(package: Path) -> dict[str, str]:
    out = package / "csrc_musa"
    return {p.relative_to(out).as_posix(): p.read_text() for p in out.rglob("*") if p.is_file() and p.name[0] != "."}


EXPECTED = {
    "pytorch/nms.cpp": "REGISTER_DEVICE_IMPL(nms_impl, PrivateUse1, nms_cuda);\n",
    "pytorch/cuda/nms_cuda.mu": '#include "nms_kernel.muh"\n#include "torch_musa/csrc/core/MUSAGuard.h"\n'
    "at::musa::MUSAGuard guard(d); // at::cuda\n",
    "common/cuda/nms_kernel.muh": "#ifndef NMS_MUH\n#define NMS_MUH\n#ifdef __MUSACC__\n#endif\n#endif\n",
    "common/hand.muh": "cudaStream_t by_hand;\n",
    "notes.txt": "cudaMalloc\n",
}


def test_the_manuals_script(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = dict(MANUAL)
    SimplePorting(cuda_dir_path="./csrc", ignore_dir_paths=["./csrc/common/mlu"], mapping_rule=rules).run()
    assert ported(package) == EXPECTED
    assert rules == MANUAL
    assert "csrc -> " in capsys.readouterr().err


def test_a_second_run_changes_nothing(package: Path) -> None:
    arguments = ("csrc", ["csrc/common/mlu"], MANUAL)
    SimplePorting(*arguments).run()
    assert SimplePorting(*arguments).run().written == ()
    (package / "csrc_musa" / "mine.txt").write_text("kept")
    SimplePorting(*arguments).run()
    assert (package / "csrc_musa" / "mine.txt").read_text() == "kept"


def test_lists_and_rules_may_be_json_texts(package: Path) -> None:
    SimplePorting("csrc", '["csrc/common/mlu"]', json.dumps(MANUAL)).run()
    assert ported(package) == EXPECTED


def test_what_cannot_be_ported_is_told_and_the_file_written(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = SimplePorting("csrc", mapping_rule=MANUAL).run()
    said = capsys.readouterr().err
    assert "csrc/common/mlu/x.cpp:1:1: error: 'cudaNope' has no known MUSA counterpart" in said
    assert '"cudaNope": "musaNope",' in said
    assert ported(package)["common/mlu/x.cpp"] == "cudaNope();\n"
    assert any(file.failed for file in done.files)


def test_default_rules_can_be_dropped_or_replaced(package: Path) -> None:
    (package / "a").mkdir()
    (package / "a" / "a.cu").write_text("cudaFree(MINE, THEIRS, OTHER);\n")
    (package / "rules").mkdir()
    (package / "rules" / "some.json").write_text('{"MINE": "1", "THEIRS": "2"}')
    (package / "rules" / "general.json").write_text('{"OTHER": "3"}')

    def port(**arguments: object) -> str:
        (package / "a_musa" / "a.mu").unlink(missing_ok=True)
        SimplePorting(cuda_dir_path="a", **arguments).run()
        return (package / "a_musa" / "a.mu").read_text()

    assert port(mapping_rule={"MINE": "0"}, mapping_dir_path="rules") == "musaFree(0, 2, OTHER);\n"
    assert port(mapping_rule={"MINE": "0"}, drop_default_mapping=True) == "cudaFree(0, THEIRS, OTHER);\n"
    assert port(drop_default_mapping=True, mapping_dir_path="rules") == "cudaFree(1, 2, OTHER);\n"


def test_the_folder_of_default_rules_is_read(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shipped = simple_porting._RULES
    assert json.loads((shipped / "extra.json").read_text()) == {}
    folder = tmp_path_factory.mktemp("mapping")
    (folder / "extra.json").write_text('{"nms_impl": "nms_other"}')
    monkeypatch.setattr(simple_porting, "_RULES", folder)
    SimplePorting("csrc", mapping_rule=MANUAL).run()
    assert "nms_other" in ported(package)["pytorch/nms.cpp"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"cuda_dir_path": "nowhere"}, "nowhere: error: there is no such folder"),
        ({"mapping_rule": "{"}, "mapping_rule:1:2: error: mapping_rule is not JSON"),
        ({"mapping_rule": {"a": 1}}, "mapping_rule: error: rules are an object"),
        ({"ignore_dir_paths": '{"a": 1}'}, "error: ignore_dir_paths is a list of folders"),
        ({"ignore_dir_paths": [3]}, "error: ignore_dir_paths is a list of folders"),
        ({"drop_default_mapping": True}, "error: drop_default_mapping leaves no rules at all"),
        ({"mapping_dir_path": "nowhere"}, "nowhere: error: there is no such folder of rules"),
    ],
)
def test_arguments_that_make_no_sense(package: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(OpgenError) as error:
        SimplePorting(**{"cuda_dir_path": "csrc", **arguments}).run()
    assert message in str(error.value)


def test_the_port_lies_beside_the_folder_however_that_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Path("csrc").absolute().with_name("csrc_musa")
    names = ["csrc", "csrc/", "./csrc", "csrc/pytorch/.."]
    assert {SimplePorting(name).musa_dir_path for name in names} == {beside}
    monkeypatch.chdir("csrc/pytorch")
    assert SimplePorting("..").musa_dir_path == beside


def test_the_command_takes_what_the_class_takes(package: Path) -> None:
    command = [sys.executable, "-m", "torch_musa.utils.simple_porting", "--cuda-dir-path", "csrc/"]
    environment = with_path()
    options = ["--ignore-dir-paths", '["csrc/common/mlu"]', "--mapping-rule", json.dumps(MANUAL)]
    done = subprocess.run([*command, *options], cwd=package, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert ported(package) == EXPECTED
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "cudaNope" in done.stderr


def test_the_architecture_is_one_number() -> None:
    assert get_musa_arch() == int(architecture().removeprefix("mp_"))


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


# What builds and what imports choose the target by the same rule; it needs nothing but the standard library.
CHOICE = "opgen.targets"


def test_only_the_tools_of_the_package_stand_on_opgen_and_nothing_stands_on_them() -> None:
    folder = ROOT / "torch_musa"
    for path in folder.rglob("*.py"):
        tool = (folder / "utils") in path.parents
        names = {
            name for name in _imported(path) if not (path.name == "_build.py" and f"{name}.".startswith(f"{CHOICE}."))
        }
        assert tool or not {n for n in names if n.split(".")[0] == "opgen" or "torch_musa.utils" in n}, path


def test_importing_torch_loads_of_opgen_only_what_chooses_the_target(run_python) -> None:
    done = run_python("import sys, torch; print(*sorted(m for m in sys.modules if m.split('.')[0] == 'opgen'))")
    assert done.stdout.split() == ["opgen", CHOICE]
