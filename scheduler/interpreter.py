"""Decides how often a long-lived process looks for garbage in cycles. Not for processes of somebody else's program.

A full collection looks at everything there is: several hundred thousand objects of a loaded Django, tens of
milliseconds in which the process does nothing else. What a server is loaded with stays for good, and what it makes of
a request or a plan is nearly always gone without the collector.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""Young objects that are left over before they are looked at; Python's own value is 700."""


def settle_in() -> None:
    """What was loaded so far is never looked at again, and what comes is looked at less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
