"""Loading the libraries and registering the device: once per process, through PyTorch's public registration calls."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import torch

from torch_musa import _build, _exit

DEVICE = "musa"
_EXTENSION = "torch_musa._C"


def started() -> bool:
    """Whether the device is registered in this process."""
    return _EXTENSION in sys.modules


def extension() -> ModuleType:
    """The bindings; only after a successful start."""
    return sys.modules[_EXTENSION]


def build() -> _build.Build:
    """The build that this process runs on."""
    file = extension().__file__
    assert file is not None
    return _build.Build(Path(file).parent.parent)


def start(*, required: bool) -> None:
    """Load and register; nothing on a second call.

    Raises:
        ImportError: `required`, and TORCH_MUSA_TARGET names no target, or there is no build for the installed PyTorch,
            or it does not load. When not required, a missing build is silent (nobody asked for musa) and the others
            are warnings (somebody set the variable, or built it, and expects it).
    """
    if started():
        return
    version = str(torch.__version__)
    try:
        note = None if "TORCH_MUSA_BUILD_DIR" in os.environ else _build.choice().note
        found = _build.find(version)
    except ValueError as error:
        if required:
            raise ImportError(f"torch_musa: {error}.") from error
        warnings.warn(f"The musa device is not available: {error}.", stacklevel=2)
        return
    if note is not None:
        warnings.warn(f"torch_musa: {note}.", stacklevel=2)
    if found is None:
        if required:
            raise ImportError(_build.how_to_build(version))
        return
    try:
        _load_extension(found)
    except ImportError as error:
        text = f"the build in {found.folder} does not load: {error}. Run `opgen build` to renew it"
        if required:
            raise ImportError(f"torch_musa: {text}.") from error
        warnings.warn(f"The musa device is not available: {text}.", stacklevel=2)
        return
    _register()


def _load_extension(found: _build.Build) -> None:
    # The libraries find each other and torch's by their run paths; torch's are in the process already.
    loader = importlib.machinery.ExtensionFileLoader(_EXTENSION, str(found.extension))
    spec = importlib.util.spec_from_file_location(_EXTENSION, found.extension, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_EXTENSION] = module


def _register() -> None:
    torch.utils.rename_privateuse1_backend(DEVICE)
    import torch_musa.musa as device_module

    torch._register_device_module(DEVICE, device_module)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )

    import torch_musa.mudnn  # noqa: F401  (adds torch.backends.mudnn)

    _exit.register()
