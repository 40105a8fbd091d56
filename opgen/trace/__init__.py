"""`opgen trace`: which operators a script calls, how often, for how long, and what each of them is worth.

`runner` is executed inside the script's process and is all that meets torch; `calls` is what it hands back, `report`
joins that with the coverage, `command` is the verb.
"""
