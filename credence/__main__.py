"""`python -m credence` is `credence`: how the supervisor starts its worker."""

from credence.cli import main

main()
