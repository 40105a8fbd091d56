"""torch_musa.utils.musa_extension: real builds. Sources without PyTorch's headers keep most of them to seconds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from search_path import with_path

from torch_musa.utils import _building, _compilation, _loading, _sources, _toolchain
from torch_musa.utils._includes import included
from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension, load, load_inline

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++").split()[0]) is None, reason="no C++ compiler")

MODULE = """
#include <Python.h>
#include <{runtime}.h>
#include "scale.{header}"

__global__ void fill(int* out, int value) {{ out[threadIdx.x] = SCALE * value + threadIdx.x; }}

static PyObject* third(PyObject*, PyObject* value) {{
  int* memory; int host[4];
  {prefix}Malloc(&memory, sizeof(host));
  fill<<<1, 4>>>(memory, (int)PyLong_AsLong(value));
  {prefix}Memcpy(host, memory, sizeof(host), {prefix}MemcpyDeviceToHost);
  {prefix}Free(memory);
  return PyLong_FromLong(host[3]);
}}

#define INIT_OF(name) PyInit_##name
#define INIT(name) INIT_OF(name)
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() {{
  static PyMethodDef methods[] = {{{{"third", third, METH_O, nullptr}}, {{nullptr, nullptr, 0, nullptr}}}};
  static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "m", nullptr, -1, methods}};
  return PyModule_Create(&module);
}}
"""
ERROR_AT = r"src/bad\.mu(:{0}:{1}|\({0}\)): error"
"""Where compilers say that line {0}, column {1} is wrong; nvcc knows no columns."""
CUDA = MODULE.format(runtime="cuda_runtime", header="cuh", prefix="cuda")
MUSA = MODULE.format(runtime="musa_runtime", header="muh", prefix="musa")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/m.cu").write_text(CUDA)
    (tmp_path / "src/scale.cuh").write_text("#define SCALE 10\n")
    (tmp_path / "src/m.mu").write_text(MUSA)
    (tmp_path / "src/scale.muh").write_text('#include "../common/scale.h"\n')
    (tmp_path / "common").mkdir()
    (tmp_path / "common/scale.h").write_text("#define SCALE 100\n")
    monkeypatch.setenv("MAX_JOBS", "1")
    return tmp_path


@pytest.mark.parametrize("ninja", ["1", "0"])
def test_device_sources_are_compiled_loaded_and_only_built_again_when_something_changed(
    folder: Path, ninja: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_NINJA", ninja)

    def loaded() -> int:
        module = load("mine", folder / "src/m.mu", build_directory=folder / "build", extra_musa_cflags=["-O0"])
        return module.third(2)

    def objects() -> list[int]:
        return [path.stat().st_mtime_ns for path in (folder / "build").rglob("*.o")]

    assert loaded() == 203
    made = objects()
    assert len(made) == 1 and (folder / "build/objects/build.ninja").exists() is (ninja == "1")
    assert loaded() == 203 and objects() == made
    (folder / "common/scale.h").write_text("#define SCALE 1000\n")
    assert loaded() == 2003 and objects() != made


def test_cuda_sources_are_ported_on_the_way(folder: Path) -> None:
    (folder / "src/m.mu").unlink()  # it would be taken for the port of m.cu
    (folder / "src/scale.muh").unlink()
    module = load("mine", str(folder / "src/m.cu"), build_directory=folder / "build", extra_musa_cflags=["-O0"])
    assert module.third(2) == 23


def test_a_source_that_cannot_be_ported_is_an_error_with_its_place(folder: Path) -> None:
    (folder / "src/bad.cu").write_text("int a;\nvoid f() { cudaNope(); }\n")
    with pytest.raises(RuntimeError) as error:
        load("mine", [folder / "src/bad.cu"], build_directory=folder / "build")
    assert f"{folder}/src/bad.cu:2:12: error: 'cudaNope' has no known MUSA counterpart" in str(error.value)
    assert "bad.cu cannot be ported to MUSA" in str(error.value)


@pytest.mark.parametrize("ninja", ["1", "0"])
def test_what_the_compiler_says_is_the_error(folder: Path, ninja: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_NINJA", ninja)
    (folder / "src/bad.mu").write_text("int a;\nint f() { return nowhere; }\n")
    with pytest.raises(RuntimeError) as error:
        load("mine", [folder / "src/bad.mu"], build_directory=folder / "build")
    text = str(error.value)
    assert text.startswith("Error building extension 'mine':") and re.search(ERROR_AT.format("2", "18"), text)
    assert text.endswith("0-bad.o could not be made; the messages above say why")


@pytest.mark.parametrize("ninja", ["1", "0"])
def test_a_compiler_that_is_not_there_is_named(folder: Path, ninja: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_NINJA", ninja)
    monkeypatch.setenv("CXX", "'/no where/g++' -v")
    (folder / "src/a.cpp").write_text("int a;\n")
    with pytest.raises(RuntimeError, match=r"/no where/g\+\+: (.*: )?([Nn]o such file|not found)"):
        load("mine", folder / "src/a.cpp", build_directory=folder / "build")


def test_an_empty_cxx_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", " ")
    assert _toolchain.find_toolchain().host_compiler == ("g++",)


def test_names_and_folders_may_hold_any_character(folder: Path) -> None:
    odd = folder / "it's a $folder: 100%"
    (folder / "src").rename(odd)
    module = load("mine", odd / "m.mu", build_directory=odd / "b", extra_musa_cflags=["-O0", '-DTEXT="a b"'])
    assert module.third(2) == 203


@pytest.mark.parametrize("name", ["my-ext", "a.b", "../up", "", "class", "it's"])
def test_a_name_that_is_none_for_a_module_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a module"):
        load(name, tmp_path / "a.mu")
    with pytest.raises(ValueError, match="is no name for a module"):
        load_inline(name, "int a;")


def test_a_text_where_a_list_of_flags_is_meant_is_refused(tmp_path: Path) -> None:
    for flags in ("extra_cflags", "extra_musa_cflags", "extra_ldflags", "extra_include_paths"):
        with pytest.raises(TypeError, match=rf"{flags} is a list: \['-O2'\]"):
            load("mine", tmp_path / "a.mu", build_directory=tmp_path, **{flags: "-O2"})
    with pytest.raises(TypeError, match="extra_compile_args is a list"):
        MUSAExtension("a", ["a.mu"], extra_compile_args="-O2")
    with pytest.raises(TypeError, match=r"extra_compile_args\['mcc'\] is a list"):
        MUSAExtension("a", ["a.mu"], extra_compile_args={"mcc": "-O2"})


def test_options_and_compilers_that_there_are_not_are_refused() -> None:
    with pytest.raises(Exception, match=r"extra_compile_args\['gcc'\]: the compilers are 'cxx' and 'mcc'"):
        MUSAExtension("a", ["a.mu"], extra_compile_args={"gcc": []})
    with pytest.raises(TypeError, match="has no option ninja"):
        BuildExtension.with_options(ninja=False)


def test_a_build_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match=r"file/build cannot be made to build mine in: .*TORCH_EXTENSIONS_DIR"):
        load("mine", tmp_path / "a.mu", build_directory=tmp_path / "file/build")


def test_no_source_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="there is no source to build mine from"):
        load_inline("mine", build_directory=tmp_path)


def test_what_is_included_is_found_without_searching_folders(tmp_path: Path) -> None:
    for name in ("src", "inc/sub", "up"):
        (tmp_path / name).mkdir(parents=True)
    os.mkfifo(tmp_path / "src/pipe.h")  # would be waited for if it were read
    (tmp_path / "src/a.cu").write_text(
        '#include "b.h"\n  # include <sub/c.h>\n#include <vector>\n#include "a.cu"\n'
        '#define H "../up/d.cuh"\n#include H\n'
    )
    (tmp_path / "src/b.h").write_text('#include "gone.h"\n#include "b.h"\n')
    (tmp_path / "inc/sub/c.h").write_text('#include "e.h"\n')
    (tmp_path / "inc/sub/e.h").write_text("")
    (tmp_path / "up/d.cuh").write_text("")
    (tmp_path / "inc/other.h").write_text("")
    found = included([tmp_path / "src/a.cu"], [tmp_path / "inc"])
    names = ["inc/sub/c.h", "inc/sub/e.h", "src/a.cu", "src/b.h", "up/d.cuh"]
    assert [path.relative_to(tmp_path).as_posix() for path in found] == names


def test_headers_of_include_folders_are_ported_wherever_these_lie(tmp_path: Path) -> None:
    texts = {
        "csrc/cuda/a.cu": "#include <helper.h>\n#include <inner.h>\n#include <plain.h>\n",
        "csrc/cuda/include/inner.h": "cudaStream_t a;\n",
        "csrc/common/helper.h": "cudaStream_t b;\n",
        "plain/plain.h": "int c;\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    folders = [tmp_path / "csrc/cuda/include", tmp_path / "csrc/common", tmp_path / "plain"]
    found = _sources.ported([tmp_path / "csrc/cuda/a.cu"], folders, tmp_path / "out")

    def first(name: str) -> str:
        return next((folder / name).read_text() for folder in found.include_dirs if (folder / name).is_file())

    assert [first(name) for name in ("inner.h", "helper.h")] == ["musaStream_t a;\n", "musaStream_t b;\n"]
    assert not list((tmp_path / "out").rglob("plain.h"))


def test_texts_are_written_once_and_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "main.cpp"
    path.write_bytes(b"\xff not UTF-8")
    _loading._write(path, ["int a;\r\nint b;"])
    assert path.read_bytes() == b"int a;\r\nint b;\n"
    before = path.stat().st_mtime_ns
    _loading._write(path, ["int a;\r\nint b;"])
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("doc", ["", 'a "b" \\n', ')doc"', 'x)doc"y)doc_"z', "日本"])
def test_a_docstring_may_hold_anything(doc: str) -> None:
    literal = _loading._literal(doc)
    mark = literal[2 : literal.index("(")]
    assert literal == f'R"{mark}({doc}){mark}"' and literal.index(f'){mark}"') == len(literal) - len(mark) - 2


def test_texts_of_two_processes_are_written_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    @contextmanager
    def locked(folder: Path) -> Iterator[None]:
        events.append("locked")
        yield
        events.append("free")

    def made(*arguments: object) -> Path:
        events.append("built")
        return tmp_path

    monkeypatch.setattr(_loading, "_locked", locked)
    monkeypatch.setattr(_loading, "_write", lambda path, lines: events.append("written") or path)
    monkeypatch.setattr(_loading, "_made", made)
    monkeypatch.setattr(_loading, "_load_library", str)
    load_inline("mine", "int a;", musa_sources="int b;", build_directory=tmp_path, is_python_module=False)
    assert events == ["locked", "written", "written", "built", "free"]


def test_what_an_interrupted_compiler_has_left_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_NINJA", "0")
    script, source, output = tmp_path / "compiler", tmp_path / "a.cpp", tmp_path / "a.o"
    step = _compilation.Step(output, (source,), ("sh", str(script)))
    source.write_text("1")
    script.write_text(f"echo whole > {output}")
    _compilation.make([step], tmp_path)
    source.write_text("2")
    script.write_text(f"echo half > {output}; kill -9 $$")
    with pytest.raises(_compilation.BuildFailed):
        _compilation.make([step], tmp_path)
    script.write_text(f"echo whole > {output}")
    _compilation.make([step], tmp_path)
    assert output.read_text() == "whole\n"


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"there is no .*nowhere\.mu to build mine from"):
        load("mine", tmp_path / "nowhere.mu", build_directory=tmp_path)


def test_sources_of_other_kinds_are_refused(folder: Path) -> None:
    (folder / "src/a.f90").write_text("")
    with pytest.raises(ValueError, match=r"a\.f90: sources are \.mu, \.cu, \.cpp"):
        load("mine", folder / "src/a.f90", build_directory=folder / "build")


def test_without_a_build_it_is_said_which_command_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_MUSA_BUILD_DIR", str(tmp_path))
    with pytest.raises(RuntimeError, match="opgen build"):
        _toolchain.find_toolchain()


def test_a_target_that_is_none_is_refused_with_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_MUSA_BUILD_DIR", raising=False)
    monkeypatch.setenv("TORCH_MUSA_TARGET", "npu")
    with pytest.raises(RuntimeError, match="TORCH_MUSA_TARGET=npu is not one of host, cuda, musa"):
        _toolchain.find_toolchain()


def test_on_cuda_mcc_is_nvcc_with_the_cards_headers_in_front(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("cuda")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/_C.so").write_text("")
    monkeypatch.setenv("TORCH_MUSA_BUILD_DIR", str(tmp_path))
    found = _toolchain.find_toolchain()
    assert found.target == "cuda" and found.device_compiler[1].endswith("sdk/cuda/mcc")
    command = _building._compile(found, "mine", Path("m.mu"), Path("m.o"), [], [], [])
    # As compilers search: folders of -I before those of -isystem.
    plain = [word.removeprefix("-I") for word in command if word.startswith("-I")]
    system = [word for flag, word in pairwise(command) if flag == "-isystem"]
    names = [str(Path(name).relative_to(ROOT)) for name in plain + system if Path(name).is_relative_to(ROOT)]
    assert names.index("sdk/cuda/include") < names.index("sdk/include")


def test_on_musa_mcc_is_the_toolkits_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("musa")
    for file in ("lib/_C.so", "toolkit/bin/mcc"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.setenv("TORCH_MUSA_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("MUSA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setenv("MUSA_ARCH", "21;22")
    monkeypatch.setenv("ENABLE_COMPILE_FP64", "1")
    found = _toolchain.find_toolchain()
    assert found.target == "musa" and found.device_compiler == (str(tmp_path / "toolkit/bin/mcc"),)
    assert [flag for flag in found.device_flags if flag.startswith("--offload-arch")] == [
        "--offload-arch=mp_21",
        "--offload-arch=mp_22",
    ]
    assert "-DENABLE_COMPILE_FP64=1" in found.device_flags
    assert tmp_path / "toolkit/include" in found.include_dirs and tmp_path / "toolkit/lib" in found.library_dirs


def test_flags_go_to_the_compilers_that_they_are_for() -> None:
    both = MUSAExtension("a._C", ["a.mu"], extra_compile_args=["-DX"])
    each = MUSAExtension(
        "a._C", ["a.mu"], extra_compile_args={"cxx": ["force_mcc", "-DC"], "mcc": ["-DM"], "nvcc": ["-N"]}
    )
    assert both._torch_musa == {"cxx": ["-DX"], "mcc": ["-DX"]}
    assert each._torch_musa == {"cxx": ["force_mcc", "-DC"], "mcc": ["-DM"]}
    assert both.language == "c++"


def test_a_setup_script_says_what_is_wrong_without_a_traceback(folder: Path) -> None:
    (folder / "src/bad.mu").write_text("int f() { return nowhere; }\n")
    script = """
        from setuptools import setup
        from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension
        setup(name="mine", packages=[], ext_modules=[MUSAExtension("mine", ["src/bad.mu"])],
              cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
    """
    (folder / "setup.py").write_text(textwrap.dedent(script))
    environment = with_path()
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.search(ERROR_AT.format("1", "18"), done.stderr)


def test_other_extensions_are_built_as_ever(folder: Path) -> None:
    (folder / "plain.c").write_text(
        "#include <Python.h>\nPyMODINIT_FUNC PyInit_plain(void) {\n"
        '  static struct PyModuleDef m = {PyModuleDef_HEAD_INIT, "plain", NULL, -1, NULL};\n'
        "  return PyModule_Create(&m);\n}\n"
    )
    script = """
        from setuptools import Extension, setup
        from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension
        command = BuildExtension.with_options(no_python_abi_suffix=True)
        extensions = [Extension("plain", ["plain.c"]), MUSAExtension("mine", ["src/m.mu"], extra_compile_args=["-O0"])]
        setup(name="mine", packages=[], ext_modules=extensions, cmdclass={"build_ext": command})
    """
    (folder / "setup.py").write_text(textwrap.dedent(script))
    environment = with_path(folder)
    subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=folder, env=environment, check=True)
    use = "import torch, plain, mine; print(mine.third(2))"
    done = subprocess.run([sys.executable, "-c", use], env=environment, capture_output=True, text=True)
    assert done.stdout == "203\n", done.stderr
    assert sorted(path.name for path in folder.glob("*.so")) == ["mine.so", "plain.so"]


def test_jobs_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "3")
    assert _compilation.jobs() == 3
    monkeypatch.setenv("MAX_JOBS", "many")
    assert _compilation.jobs() == os.cpu_count()


@pytest.mark.build
def test_inline_sources_with_tensors(tmp_path: Path) -> None:
    cuda = """
        __global__ void twice_kernel(const float* in, float* out, int64_t n) {
          const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) out[i] = 2 * in[i];
        }
        at::Tensor twice(at::Tensor x) {
          TORCH_CHECK(x.is_cuda(), "twice: not on the device");
          auto out = at::empty_like(x);
          twice_kernel<<<(x.numel() + 63) / 64, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
              x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
          return out;
        }
    """
    module = load_inline(
        "inline_twice",
        cpp_sources="at::Tensor twice(at::Tensor x);",
        cuda_sources=textwrap.dedent(cuda),
        functions={"twice": 'Twice "x".'},
        extra_cflags=["-O0"],
        extra_musa_cflags=["-O0"],
        build_directory=tmp_path,
    )
    x = torch.randn(100, device="musa")
    assert torch.equal(module.twice(x).cpu(), 2 * x.cpu())
    assert 'Twice "x".' in module.twice.__doc__
    with pytest.raises(RuntimeError, match="not on the device"):
        module.twice(x.cpu())


@pytest.mark.build
def test_a_third_party_package_builds_and_passes_its_own_tests(tmp_path: Path) -> None:
    package = tmp_path / "detection_ops"
    left_out = shutil.ignore_patterns("build", "csrc_musa", "*.so", "__pycache__")
    shutil.copytree(ROOT / "examples/detection_ops", package, ignore=left_out)
    environment = with_path(package, FORCE_MUSA="1", MAX_JOBS="1")
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(tests, cwd=package, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
