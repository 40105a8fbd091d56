"""Where CCCL's headers are: thrust on the host stand-in is CCCL's, with a device system of our own in front.

Run as a program it prints the folder.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

PACKAGE = "nvidia-cuda-cccl"
_MARK = "thrust/version.h"


def include_folder() -> Path | None:
    """The folder that holds `thrust/`, of the package installed beside this Python; None where there is none."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.as_posix().endswith(_MARK):
            return Path(str(file.locate())).resolve().parents[1]
    return None


if __name__ == "__main__":
    folder = include_folder()
    if folder is None:
        sys.exit(f"{PACKAGE} is not installed for {sys.executable}.")
    print(folder)
