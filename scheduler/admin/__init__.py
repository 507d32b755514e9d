"""The administration: Django's own, over what the console and the API declare too. An edge: parse, call, present.

Whatever it changes goes through the services, so that it is versioned and audited like any other change.
"""

from scheduler.admin import declared, people

__all__ = ["declared", "people"]
