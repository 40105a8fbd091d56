"""The MUSA device for PyTorch: `torch.device("musa")` and `torch.musa`.

`import torch` loads this package by itself through the entry point group `torch.backends`; `import torch_musa` does it
explicitly. The difference is what happens when nothing has been built for the installed PyTorch: the automatic way
leaves torch as it is, for the tools that make the build import torch too, and the explicit one raises ImportError.
"""

from __future__ import annotations

import sys
from typing import Any

__version__ = "0.1.0"


def _autoload() -> None:
    """Called by PyTorch at the end of its own import. Never raises: a missing backend must not take torch away."""
    from torch_musa import _backend

    _backend.start(required=False)
    if _imported_by_torch and not _backend.started():
        # A later `import torch_musa` is somebody asking for the device: let it run this module again and get the error.
        del sys.modules[__name__]


def _torch_imports_us() -> bool:
    """Whether this import is part of `import torch`, which has got as far as its entry points."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(getattr(torch.__spec__, "_initializing", False))


def __getattr__(name: str) -> Any:
    # `torch_musa.amp` and `torch_musa._MUSAC` are how MUSA code reaches the device module and the bindings. Modules are
    # taken from sys.modules, because an import of a submodule asks this function for it first.
    if name in ("_C", "_MUSAC"):
        bindings = sys.modules.get("torch_musa._C")
        if bindings is not None:
            return bindings
    device_module = sys.modules.get("torch_musa.musa")
    if device_module is not None and not name.startswith("_") and hasattr(device_module, name):
        return getattr(device_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_imported_by_torch = _torch_imports_us()
if not _imported_by_torch:
    import torch  # noqa: F401  (loads the backend on the way, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0)

    from torch_musa import _backend

    _backend.start(required=True)
