"""In which release something changed, told from as many releases as are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from opgen.releases.catalogue import Catalogue

__all__ = ["Timeline"]


@dataclass(frozen=True)
class Timeline:
    """The two releases compared and those known between them, in the direction of the comparison."""

    releases: tuple[Catalogue, ...]

    @staticmethod
    def of(before: Catalogue, after: Catalogue, known: Sequence[Catalogue] = ()) -> Timeline:
        low, high = sorted((Version(before.version), Version(after.version)))
        inner = sorted((c for c in known if low < Version(c.version) < high), key=lambda c: Version(c.version))
        return Timeline((before, *(inner if Version(before.version) == low else reversed(inner)), after))

    @property
    def before(self) -> Catalogue:
        return self.releases[0]

    @property
    def after(self) -> Catalogue:
        return self.releases[-1]

    def specifiers(self, holds: Callable[[Catalogue], bool]) -> tuple[str, str]:
        """Two values for `torch:`, for the releases on this side of a change and on the other: `<2.12` and `>=2.12`.

        `holds` is what was true in `before` and is not in `after`. The bound is a minor release, since operators do not
        change in patch releases; where releases between the two are unknown it may be later than need be.
        """
        changed = next(i for i, release in enumerate(self.releases) if not holds(release))
        first, last = self.releases[changed], self.releases[changed - 1]
        forwards = Version(last.version) < Version(first.version)
        bound = _minor(first.version if forwards else last.version)
        return (f"<{bound}", f">={bound}") if forwards else (f">={bound}", f"<{bound}")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
