"""`python -m credence` is the command `credence`."""

from credence.safe_path import leave_current_directory

leave_current_directory()

from credence.cli import main  # noqa: E402 - its imports must not find the current directory

main()
