"""From what a survey has counted to a verdict. Pure; the survey is looked at, never imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from opgen.truth.heartbeat import Beat
from opgen.truth.record import DtypeResult, Verdict, worst

if TYPE_CHECKING:
    from opgen.testing.survey import Survey

__all__ = ["crashed", "hung", "judge", "with_gradients"]

_LONGEST = 400


def judge(survey: Survey, families: Mapping[str, int]) -> DtypeResult:
    """The verdict over the cases of one main dtype."""
    endings = {ending.name: count for ending, count in survey.endings.items()}
    counted = DtypeResult(
        Verdict.STRICT,
        cases=survey.total,
        agreed=endings.get("AGREED", 0),
        refused=endings.get("REFUSED", 0),
        unsupported=endings.get("UNSUPPORTED", 0),
        discarded=endings.get("DISCARDED", 0) + endings.get("UNTRIED", 0),
        failed=endings.get("FAILED", 0),
        families=dict(families),
    )
    if survey.findings:
        verdict, reason, script = _worst_finding(survey)
        return replace(counted, verdict=verdict, reason=reason, script=script)
    if counted.agreed:
        return counted
    if not counted.supported:
        return replace(counted, verdict=Verdict.UNTESTED, reason="the device lacks the dtype")
    tried = f"{counted.refused} refused by both sides, {counted.discarded} beyond the reference"
    return replace(counted, verdict=Verdict.UNTESTED, reason=f"no case could be compared: {tried}")


def with_gradients(result: DtypeResult, survey: Survey) -> DtypeResult:
    """The result when gradients have been compared, too."""
    endings = {ending.name: count for ending, count in survey.endings.items()}
    failed = endings.get("FAILED", 0)
    result = replace(result, gradients=endings.get("AGREED", 0) + failed)
    if not survey.findings:
        return result
    verdict, reason, script = _worst_finding(survey)
    if worst([result.verdict, verdict]) is result.verdict:
        return replace(result, failed=result.failed + failed)
    return replace(result, verdict=verdict, failed=result.failed + failed, reason=f"backward, {reason}", script=script)


def _worst_finding(survey: Survey) -> tuple[Verdict, str, str]:
    """Verdict, reason and script of the worst kind of fault that a survey has found."""
    wrong = [category for category in survey.findings if category.wrong]
    category = (wrong or list(survey.findings))[0]
    finding = survey.findings[category]
    cases = f"{survey.categories[category]} of {survey.total} cases"
    reason = f"{category.value} in {cases}: {sentence(finding.problem.text)}"
    return Verdict.FAILED if wrong else Verdict.PARTIAL, reason, finding.script


def crashed(beat: Beat, how: str, said: str) -> DtypeResult:
    """The result for a main dtype in which the process ended; ``said`` is the last it had to say."""
    if beat.phase == "reference":
        reason = f"the reference {how} in case {beat.case}"
        return DtypeResult(Verdict.UNTESTED, cases=beat.case, discarded=1, reason=reason, script=beat.script or None)
    where = f"case {beat.case}" if beat.phase != "gradients" else f"case {beat.case} of its gradients"
    reason = f"{how} in {where}" + (f": {sentence(said)}" if said else "")
    return DtypeResult(Verdict.FAILED, cases=beat.case, failed=1, reason=reason, script=beat.script or None)


def hung(beat: Beat, seconds: float) -> DtypeResult:
    """The result for a main dtype in which a call did not return."""
    return crashed(beat, f"no answer within {seconds:g} s", "")


def sentence(text: str) -> str:
    """A report's lines as one, of a length that a table bears."""
    joined = re.sub(r"\s+", " ", text).strip()
    return joined if len(joined) <= _LONGEST else f"{joined[: _LONGEST - 3]}..."
