"""Decides how a long-lived process shares its interpreter among threads, and how often it looks for garbage in cycles.

For servers; a process of somebody else's program is left as it is.

A thread that comes back from the database waits until the one that runs gives way, 5 ms by Python's own rule. In a web
process the loop runs nearly always, and a request asks the database twenty times: that was 100 ms of waiting in each.

A full collection looks at everything there is: several hundred thousand objects of a loaded Django, tens of
milliseconds in which the process does nothing else. What a server is loaded with stays for good, and what it makes of
a request or a plan is nearly always gone without the collector.
"""

import gc
import sys
from typing import Final

TURN_S: Final = 0.000_5
"""How long a thread runs while another one wants to."""
NEW_OBJECTS: Final = 10_000
"""Young objects that are left over before they are looked at; Python's own value is 700."""


def settle_in() -> None:
    """Let threads take short turns. What was loaded so far is never looked at again, and what comes less often."""
    sys.setswitchinterval(TURN_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
