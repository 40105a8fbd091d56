"""The process has one C++ runtime, whatever the toolchain would rather link."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_PROJECT = f"""\
cmake_minimum_required(VERSION 3.27)
project(one LANGUAGES CXX)
include({ROOT}/cmake/SharedRuntime.cmake)
add_library(one SHARED one.cpp)
"""
_SOURCE = """\
#include <sstream>
std::string text(int number) {
  std::ostringstream out;
  out << number;
  return out.str();
}
"""
# Where g++ has no libstdc++.so, -lstdc++ finds the archive: that is what -static-libstdc++ does.
_TOOLCHAIN_WITHOUT_THE_LINK = """\
#!/bin/sh
[ "$1" = -print-file-name=libstdc++.so ] && echo libstdc++.so && exit
exec g++ -static-libstdc++ "$@"
"""


def needed(library: Path) -> str:
    return subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="libstdc++ is Linux's")
@pytest.mark.parametrize("lacks_link", [False, True], ids=["whole toolchain", "toolchain without libstdc++.so"])
def test_libraries_take_the_shared_runtime(tmp_path: Path, lacks_link: bool):
    (tmp_path / "CMakeLists.txt").write_text(_PROJECT)
    (tmp_path / "one.cpp").write_text(_SOURCE)
    compiler = tmp_path / "g++-for-test"
    compiler.write_text(_TOOLCHAIN_WITHOUT_THE_LINK if lacks_link else '#!/bin/sh\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:/usr/bin") or "cmake"
    build = tmp_path / "build"
    configure = [
        cmake,
        "-S",
        tmp_path,
        "-B",
        build,
        f"-DCMAKE_CXX_COMPILER={compiler}",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=",
    ]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run([cmake, "--build", build], check=True, capture_output=True)
    assert "libstdc++.so.6" in needed(build / "libone.so")
