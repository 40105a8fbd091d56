"""`python -m opgen.port`."""

from opgen.port.cli import command

command()
