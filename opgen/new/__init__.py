"""`opgen new`: an operator's entries, the skeleton of its kernel and its test.

`choose` decides how the operator gets its kernel, or says why not; `skeleton` renders sources; `place` finds the spot
in the operator list; `plan` puts the three together and checks the result before anything exists; `write` makes it so,
all or nothing; `command` is the verb. Everything but `write` and `command` is pure.
"""
