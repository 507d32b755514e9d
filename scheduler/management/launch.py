"""``python -m scheduler.management.launch PARENT PROGRAM...``: become a Python program that ends with its parent.

The request to the kernel has to be made by the child itself, and survives the change into the program.
"""

import os
import sys

from scheduler.management.children import die_with_parent


def main() -> None:
    """Ask to be ended with the parent, then turn into the program."""
    parent = int(sys.argv[1])
    die_with_parent()
    if os.getppid() != parent:
        # The parent ended while the interpreter was starting.
        sys.exit(0)
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])  # noqa: S606  # on purpose without a shell


if __name__ == "__main__":
    main()
