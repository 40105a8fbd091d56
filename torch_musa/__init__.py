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


def _torch_imports_us() -> bool:
    """Whether this import is part of `import torch`, which has got as far as its entry points."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(getattr(torch.__spec__, "_initializing", False))


def __getattr__(name: str) -> Any:
    # `torch_musa.amp` and `torch_musa._MUSAC` are how MUSA code reaches the device module and the bindings.
    from torch_musa import _backend

    if _backend.started():
        if name in ("_C", "_MUSAC"):
            return _backend.extension()
        import torch_musa.musa as device_module

        if not name.startswith("_") and hasattr(device_module, name):
            return getattr(device_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not _torch_imports_us():
    import torch  # noqa: F401  (loads the backend on the way, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0)

    from torch_musa import _backend

    _backend.start(required=True)
