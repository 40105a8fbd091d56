"""Everything that names one particular backend, in one place.

Another PrivateUse1 backend is another instance of `Backend`; no other module spells "musa".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backend:
    """The names that generated code and messages use for a backend."""

    name: str
    """Device name as users write it: `device="musa"`."""
    namespace: str
    """C++ namespace of our kernels, meta classes and impl classes."""
    registration_namespace: str
    """C++ namespace of the generated wrappers and of their shared helpers."""
    op_namespace: str
    """Operator namespace for new schemas, `musa::rope`."""
    yaml_name: str
    """The operator list, for the "generated from" line."""
    ops_header_dir: str
    """Include directory of the generated per-operator headers."""
    umbrella_header: str
    """Include path of the header that includes all of them."""
    helpers_header: str
    """Include path of what all registration shards share."""
    signatures_header: str
    """Include path of the function template that the signature sources instantiate."""
    empty_header: str
    """Include path that declares the next two."""
    empty_function: str
    """What makes an output, `(sizes, TensorOptions)`, without a way through the dispatcher."""
    empty_strided_function: str
    """The same with strides after the sizes."""
    meta_bases_header: str
    """Include path of the hand-written base classes that `structured_inherits` may name."""
    fallback_header: str
    """Include path that declares the boxed CPU fallback."""
    fallback_function: str
    """Qualified name of the boxed CPU fallback."""
    register_stub_macro: str
    """The macro that hangs a kernel on a DispatchStub."""

    meta_base: str
    """The plainest of them: a meta function that declares outputs and no more."""
    skeleton_header: str
    """Include path that declares what an unwritten kernel calls."""
    skeleton_function: str
    """What a kernel calls in place of its computation while it is not written: it throws, and opgen sees it."""

    dispatch_key: str = "PrivateUse1"
    """The key dense tensors of this backend have; the only one that may be structured."""
    other_dispatch_keys: tuple[str, ...] = (
        "QuantizedPrivateUse1",
        "SparsePrivateUse1",
        "SparseCsrPrivateUse1",
        "NestedTensorPrivateUse1",
        "AutogradPrivateUse1",
    )
    """Further keys an entry may register for; their kernels are always unstructured."""
    new_op_dispatch_keys: tuple[str, ...] = (
        "CPU",
        "Meta",
        "CompositeExplicitAutograd",
        "CompositeImplicitAutograd",
    )
    """Keys that only a schema of our own may register for (for upstream's ops they belong to PyTorch)."""
    impl_prefix: str = "Musa"
    """What the names of structured implementations begin with: `MusaTril`."""
    fallback_kernel: str = "cpu_fallback"
    """The reserved kernel name that means "through the CPU on purpose"."""
    shard_count: int = 8
    """Number of registration sources; fixed, so that adding an operator never moves another one."""
    signature_shard_count: int = 4
    """Number of sources that instantiate what the dispatcher needs for each type of wrapper; fixed likewise."""

    @property
    def dispatch_keys(self) -> tuple[str, ...]:
        """All keys that entries for upstream operators may name."""
        return (self.dispatch_key, *self.other_dispatch_keys)

    def op_header(self, root: str) -> str:
        """Include path of the generated declarations for the operators called `root`."""
        return f"{self.ops_header_dir}/{root}_native.h"


MUSA = Backend(
    name="musa",
    namespace="at::musa",
    registration_namespace="at::musa::registration",
    op_namespace="musa",
    yaml_name="musa_functions.yaml",
    ops_header_dir="torch_musa/ops",
    umbrella_header="torch_musa/MUSANativeFunctions.h",
    helpers_header="torch_musa/RegistrationHelpers.h",
    signatures_header="torch_musa/RegistrationSignatures.h",
    empty_header="torch_musa/csrc/aten/EmptyTensor.h",
    empty_function="at::musa::empty_musa",
    empty_strided_function="at::musa::empty_strided_musa",
    meta_bases_header="torch_musa/csrc/aten/ops/MetaBases.h",
    fallback_header="torch_musa/csrc/aten/CPUFallback.h",
    fallback_function="at::musa::cpu_fallback",
    register_stub_macro="REGISTER_MUSA_DISPATCH",
    meta_base="MyMetaBase",
    skeleton_header="torch_musa/csrc/aten/Skeleton.h",
    skeleton_function="NotWritten",
)
