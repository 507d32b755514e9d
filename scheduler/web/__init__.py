"""Server-rendered pages of the operator console under ``/ops/``. Edges: parse, call, present."""
