"""What earlier runs wrote into an output folder, so that files of anybody else are left alone.

`.opgen-port.json` in that folder has the digest of every file as it was written. A file that is not in it, or whose
digest is another one by now, is somebody's own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from opgen.diagnostics import Diagnostics, Location

NAME = ".opgen-port.json"
_VERSION = 1


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Manifest:
    """Digests by path below the output folder, with `/`."""

    digests: dict[str, str] = field(default_factory=dict)
    changes: dict[str, str | None] = field(default_factory=dict)
    """What this run has written, and (None) removed."""

    def record(self, key: str, value: str) -> None:
        self.digests[key] = self.changes[key] = value

    def forget(self, key: str) -> None:
        del self.digests[key]
        self.changes[key] = None

    def merge(self, other: Manifest) -> None:
        """Takes over what another run has changed."""
        for key, value in other.changes.items():
            self.digests.pop(key, None)
            if value is not None:
                self.digests[key] = value

    def text(self) -> str:
        return json.dumps({"version": _VERSION, "files": dict(sorted(self.digests.items()))}, indent=1) + "\n"


def read_manifest(out: Path, notes: Diagnostics) -> Manifest:
    """The manifest of a folder; an empty one where there is none. A broken one is an error, and counts as none."""
    path = out / NAME
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        files = record["files"]
        if record["version"] != _VERSION or not all(isinstance(v, str) for v in files.values()):
            raise ValueError("of another version")
        return Manifest(dict(files))
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        hint = "remove it; ports in this folder then count as yours where they differ from what would be written"
        notes.error(Location(str(path)), "the record of earlier ports cannot be read", hint)
        return Manifest()
