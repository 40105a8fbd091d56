"""What is known about an overload: a verdict for each dtype, the evidence, and how it was come by. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

__all__ = ["ENOUGH", "DtypeResult", "Record", "Verdict", "worst"]


class Verdict(str, Enum):
    """How far an overload can be trusted, for one dtype or for all that the device supports.

    ======== ======================================================================================================
    STRICT   every valid case agrees with the reference in everything that is compared
    PARTIAL  no case gave a wrong value, but some valid case was refused, or broke another promise (strides, aliasing,
             a warning, the type of an exception, a silent trip through the CPU)
    FAILED   a wrong value, a crash or a hang
    UNTESTED no case could be compared: the device lacks the dtype, there is no kernel, or nothing valid could be drawn
    ======== ======================================================================================================
    """

    STRICT = "STRICT"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    UNTESTED = "UNTESTED"


ENOUGH = 20
"""Cases of each dtype, and what is run by default. A run of fewer is a look, and counts for no overload as STRICT."""

# Best first. An untested dtype says nothing, so it never hides what another dtype has shown.
_SEVERITY = (Verdict.UNTESTED, Verdict.STRICT, Verdict.PARTIAL, Verdict.FAILED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several dtypes: the worst of those that were tested, UNTESTED when none was."""
    return max(verdicts, key=_SEVERITY.index, default=Verdict.UNTESTED)


@dataclass(frozen=True)
class DtypeResult:
    """What the cases of one main dtype have shown."""

    verdict: Verdict
    cases: int = 0
    agreed: int = 0
    """Cases in which both sides returned the same."""
    refused: int = 0
    """Cases that both sides refused with the same type of exception."""
    unsupported: int = 0
    """Cases in which the device said that it lacks the dtype."""
    discarded: int = 0
    """Cases in which the reference itself could not compute."""
    failed: int = 0
    gradients: int = 0
    """Cases in which gradients were compared, too."""
    judged: int = 0
    """Tests of PyTorch's own databases that ran the overload and passed."""
    judge_failed: int = 0
    """Tests of PyTorch's own databases about the overload that failed, those with a known reason among them."""
    families: Mapping[str, int] = field(default_factory=dict)
    """Calls by the kernel family that really ran, as the dispatcher counted them."""
    reason: str | None = None
    """Why the verdict is not STRICT, in a sentence; None when it is."""
    script: str | None = None
    """A program that reproduces the first failure."""

    @property
    def supported(self) -> bool:
        """False when the device refused the dtype by name in every case that the reference took."""
        return not (self.unsupported and not self.agreed and not self.failed)


@dataclass(frozen=True)
class Record:
    """One overload's results, and everything that is needed to get them again."""

    op: str
    torch: str
    target: str
    commit: str
    """The commit of the sources that were run; ends in "+" where the tree was not clean."""
    seed: int
    reference: str
    """What the results were compared with: "cpu", "law" for random operators, or the name of a reference function."""
    digest: str
    """Of everything the results depend on: kernel, headers, toolkit, harness, PyTorch. Another digest: probe again."""
    seconds: float
    """Of one core."""
    dtypes: Mapping[str, DtypeResult] = field(default_factory=dict)
    """By the name of the main dtype, without "torch."."""
    reason: str | None = None
    """Why no dtype could be tested at all; None where one was."""
    asked: int = 0
    """Cases asked for, for each dtype."""
    complete: bool = True
    """False when only some of the dtypes were asked for."""
    calls: tuple[str, ...] = ()
    """The operators that ran on the device inside the overload, itself among them: the digest covers their sources."""
    loaded: tuple[str, ...] = ()
    """Files of operators that were loaded before, by absolute path; the digest covers them, not what they import."""

    @property
    def narrow(self) -> str | None:
        """Why too little was run to call the overload STRICT as a whole; None where enough was."""
        if not self.dtypes:
            return None
        if not self.complete:
            return f"only {', '.join(self.dtypes)} {'was' if len(self.dtypes) == 1 else 'were'} run"
        if self.asked < ENOUGH:
            return f"only {self.asked} {'case was' if self.asked == 1 else 'cases were'} run of each dtype"
        return None

    @property
    def counted(self) -> Verdict:
        """The verdict as the matrix counts it: STRICT takes all dtypes and `ENOUGH` cases of each, a fault but one."""
        return Verdict.UNTESTED if self.verdict is Verdict.STRICT and self.narrow else self.verdict

    @property
    def why_counted(self) -> str | None:
        """Why it does not count as STRICT."""
        return self.narrow if self.counted is not self.verdict else self.why

    @property
    def why(self) -> str | None:
        """Why the verdict is not STRICT: the reason of the dtype that decided it, named where others are better."""
        if self.reason is not None or self.verdict is Verdict.STRICT:
            return self.reason
        if not self.dtypes:
            return "nothing was run"
        tested = {name: result for name, result in self.dtypes.items() if result.supported}
        deciding = [name for name, result in tested.items() if result.verdict is self.verdict]
        if not deciding:
            return "the device supports none of its dtypes"
        reason = self.dtypes[deciding[0]].reason or "no reason was recorded"
        return reason if len(deciding) == len(self.dtypes) else f"{', '.join(deciding)}: {reason}"

    @property
    def verdict(self) -> Verdict:
        """The verdict over the dtypes that the device supports."""
        return worst(result.verdict for result in self.dtypes.values() if result.supported)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, keys in the order above, empty fields of dtypes left out."""
        plain = asdict(self)
        plain["calls"] = list(self.calls)
        plain["loaded"] = list(self.loaded)
        plain["dtypes"] = {
            name: {key: value for key, value in asdict(result).items() if value or key in ("verdict", "cases")}
            for name, result in self.dtypes.items()
        }
        return plain

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Record:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        dtypes = {
            name: DtypeResult(**{**result, "verdict": Verdict(result["verdict"])})
            for name, result in plain["dtypes"].items()
        }
        lists = {name: tuple(plain.get(name, ())) for name in ("calls", "loaded")}
        return Record(**{**plain, "dtypes": dtypes, **lists})
