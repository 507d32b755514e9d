"""The REST API under `/api/v1`. Edges only: parse, call one service or read, present."""
