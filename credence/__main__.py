"""`python -m credence` is the command `credence`; the supervisor starts its worker this way."""

from credence.cli import main

main()
