// Exists so that the precompiled header belongs to a target of its own, from which the others reuse
// it.
