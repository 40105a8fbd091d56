"""Where the time of a case goes: the kernels that one call launches on each device, and what its host spends on it.

On the target cuda, musa's kernels are CUDA kernels, which CUPTI sees whoever launches them. PyTorch then says that they
ran on PrivateUse1, as it does of every kernel once such a backend has a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, supported_activities

from side_by_side.cases import Case
from side_by_side.measure import Pair, Side
from side_by_side.record import PROFILERS_OWN, Launched, launched_from

_CALLS = {"issue": 50, "device": 10, "steps": 2}
KEPT = 8
"""Of the longest kernels and operators, in a record."""


def explain(case: Case, pair: Pair, most: int | None = KEPT) -> dict[str, Launched]:
    """By device name. The profiler slows the host down: its times say what is much and what little, not how much."""
    musa = launched(case, pair.musa, most)
    pair.release()
    return {pair.musa.device: musa, pair.native.device: alone(case, pair, most)}


def alone(case: Case, pair: Pair, most: int | None) -> Launched:
    """The native side, without this backend in its process."""
    found = pair.alone.ask(pair.native.device, "explain", case=case.key, most=most)
    return launched_from(found)


def launched(case: Case, side: Side, most: int | None) -> Launched:
    number = min(_CALLS[case.method], case.count)
    call = case.call(side.device)
    for _ in range(3):
        call()
    side.synchronize()
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & set(supported_activities())
    with profile(activities=list(activities)) as profiler:
        for _ in range(number):
            call()
        side.synchronize()
    kernels: defaultdict[str, list[float]] = defaultdict(list)
    for event in profiler.events() or ():
        if event.device_type != DeviceType.CPU and not getattr(event, "is_user_annotation", False):
            kernels[event.name].append(event.time_range.elapsed_us())
    host = {
        average.key: (average.count / number, average.self_cpu_time_total / number)
        for average in profiler.key_averages()
        if average.self_cpu_time_total > 0 and "Synchronize" not in average.key and average.key not in PROFILERS_OWN
    }
    on_device = {name: (len(times) / number, sum(times) / number) for name, times in kernels.items()}
    return Launched(sum(time for _, time in on_device.values()), _longest(on_device, most), _longest(host, most))


def _longest(of: Mapping[str, tuple[float, float]], most: int | None) -> list[tuple[str, float, float]]:
    ordered = sorted(of.items(), key=lambda item: -item[1][1])
    return [(name, round(count, 3), round(time, 3)) for name, (count, time) in ordered[:most]]
