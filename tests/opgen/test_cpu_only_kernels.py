"""No entry may reuse a kernel that upstream has for the CPU alone, unless somebody has looked at what it does.

Such a function may read the memory of operands from the host. The stand-in goes on where memory is open; on a GPU
the process ends.
"""

from __future__ import annotations

from pathlib import Path

from generator_cases import classified, upstream

OPERATORS = Path(__file__).resolve().parents[2] / "yaml" / "musa_functions.yaml"

# Read in upstream's sources: what each does beside calling operators and stubs.
HARMLESS = {
    "glu_backward_cpu": "an iterator over the device's tensors and a stub",
    "glu_backward_cpu_out": "an iterator over the device's tensors and a stub",
    "bmm_nested": "operators on each part",
    "nested_from_padded_generic": "operators on each part; sizes come from the CPU",
    "NestedTensor_to_padded_tensor_generic": "operators on each part; sizes come from the CPU",
    "quantize_per_tensor_list_cpu": "the operator for one tensor, again and again",
}


def test_kernels_that_upstream_has_for_the_cpu_alone_are_known_not_to_touch_memory() -> None:
    keys: dict[str, set[str]] = {}
    for key, index in upstream().indices.items():
        for metadata in index.index.values():
            keys.setdefault(metadata.kernel, set()).add(key)
    cpu_only = {kernel for kernel, of in keys.items() if all(key.endswith("CPU") for key in of)}
    registrations, _ = classified(OPERATORS.read_bytes())
    reused = {r.kernel for r in registrations if r.cpp_namespace == "at::native" and r.kernel in cpu_only}
    # structured implementations are named like the CPU's, and end in a stub of the device's own
    structured = {r.kernel for r in registrations if r.kind.value.startswith("legacy")}
    unknown = reused - structured - HARMLESS.keys()
    assert not unknown, f"read what these do with memory: {sorted(unknown)}"
    assert HARMLESS.keys() <= reused
