"""The live view: from one stored snapshot per second to frames in every open page.

The flow, in reading order:

1. ``newest``     reads the newest snapshot row, at most once per second per process;
2. ``board``      parses its JSON into frozen views;
3. ``attention``  ranks what needs a person; ``wording`` and ``drawing`` turn numbers into text and geometry;
4. ``pages``      names each live page and what its template is given;
5. ``render``     renders a page once and cuts it into fragments;
6. ``frames``     compares two frames and composes the smallest message between them;
7. ``hub``        hands the newest frame to every socket, newest wins;
8. ``feed``       the one task per event loop that turns this once per second while somebody watches.

Nothing here knows who is watching: frames are viewer-neutral. Nothing here writes to the database.
"""
