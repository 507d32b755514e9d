"""Server-rendered pages of the operator console under ``/ops/``. Edges only: parse, call one service or read, present."""
