"""The class that hands a CUDA allocator's functions on (target cuda), made of samples and of the wheel's headers."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

TOOL = Path(__file__).resolve().parents[2] / "sdk/cuda/mudnn/forwarding_class.py"

BASE = """
namespace a {
struct MY_API Base {
  virtual ~Base() = default;
  virtual void* allocate(size_t n) = 0;
  virtual bool simple(const Ptr& /*p*/) const;
  void not_virtual();
};
class Unrelated { virtual void other() = 0; };
}
"""

DERIVED = """
namespace a::b {
class DERIVED_TOO_API Derived : public a::Base {
 public:
  virtual std::pair<size_t, size_t>& info(std::function<bool(stream_t&)> filter, Id id = {0, 0}, bool all = true) {
    return nothing;
  }
  virtual const char* const* names(const char* const* from, int (&table)[3]) const noexcept = 0;
  void* allocate(size_t n) override;
  // Overloads are functions of their own.
  virtual void record(const Ptr& ptr, Stream stream) = 0;
  virtual void record(Ptr&& ptr, OtherStream) = 0;
  static int count;
};
}
"""


def forward(folder: Path, cls: str, *headers: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOL, "--name", "Forwarding", "--class", cls, *headers, "-o", folder / "out.h"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def headers(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "base.h", tmp_path / "derived.h"
    for path, text in zip(paths, (BASE, DERIVED), strict=True):
        path.write_text(text)
    return paths


def test_every_virtual_function_of_the_class_and_its_bases_is_handed_on(
    tmp_path: Path, headers: tuple[Path, Path]
) -> None:
    done = forward(tmp_path, "Derived", *headers)
    assert done.returncode == 0, done.stderr
    assert_expected_inline(
        (tmp_path / "out.h").read_text(),
        """\
// Made by forwarding_class.py of the headers that are installed.
class Forwarding : public Derived {
 public:
  // Where the calls go.
  virtual Derived& next() const = 0;

  std::pair<size_t, size_t>& info(std::function<bool(stream_t&)> a0, Id a1, bool a2) override {
    return static_cast<Derived&>(next()).info(std::move(a0), std::move(a1), std::move(a2));
  }
  const char* const* names(const char* const* a0, int (& a1)[3]) const noexcept override {
    return static_cast<Derived&>(next()).names(std::move(a0), a1);
  }
  void record(const Ptr& a0, Stream a1) override {
    return static_cast<Derived&>(next()).record(a0, std::move(a1));
  }
  void record(Ptr&& a0, OtherStream a1) override {
    return static_cast<Derived&>(next()).record(std::move(a0), std::move(a1));
  }
  void* allocate(size_t a0) override {
    return static_cast<Base&>(next()).allocate(std::move(a0));
  }
  bool simple(const Ptr& a0) const override {
    return static_cast<Base&>(next()).simple(a0);
  }
};
""",
    )


@pytest.mark.parametrize(
    ("declaration", "complaint"),
    [
        ("virtual int operator()(int) = 0;", "only plain virtual functions"),
        ("virtual int f(int {) = 0;", "cannot be parsed"),
    ],
)
def test_what_cannot_be_handed_on_is_said_with_its_line_and_nothing_is_written(
    tmp_path: Path, declaration: str, complaint: str
) -> None:
    header = tmp_path / "odd.h"
    header.write_text(f"struct Odd {{\n  virtual void fine() = 0;\n  {declaration}\n}};\n")
    done = forward(tmp_path, "Odd", header)
    assert done.returncode == 1
    assert f"{header}:3" in done.stderr and complaint in done.stderr
    assert not (tmp_path / "out.h").exists()


def test_a_base_that_no_header_has_is_named(tmp_path: Path, headers: tuple[Path, Path]) -> None:
    done = forward(tmp_path, "Derived", headers[1])
    assert done.returncode == 1
    assert "no class Base in" in done.stderr


def test_a_header_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = forward(tmp_path, "Derived", tmp_path / "none.h")
    assert done.returncode == 1
    assert f"{tmp_path / 'none.h'}: No such file" in done.stderr


def test_the_installed_wheels_allocator_is_handed_on_whole(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.submodule_search_locations
    include = Path(spec.submodule_search_locations[0]) / "include/c10"
    headers = [include / name for name in ("cuda/CUDACachingAllocator.h", "core/CachingDeviceAllocator.h")]
    done = forward(tmp_path, "CUDAAllocator", *headers, include / "core/Allocator.h")
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "out.h").read_text()
    declared = re.findall(
        r"^  virtual (?!~)(?:.*\s)?[*&]?(\w+)\(", "".join(h.read_text() for h in headers), re.MULTILINE
    )
    handed_on = re.findall(r"return .*\.(\w+)\(.*\);$", made, re.MULTILINE)
    assert len(declared) > 30
    others = {"Execute"}  # of another class of the headers
    missing = Counter(name for name in declared if name not in others) - Counter(handed_on)
    assert not missing, "overloads are counted, too"
    assert {"allocate", "raw_deleter", "copy_data"} <= set(handed_on)
