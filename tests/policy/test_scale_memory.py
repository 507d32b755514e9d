"""What a leader leaves for the next one."""

from typing import Any

import orjson
import pytest

from scheduler.policy.autoscale import Peak, Track
from scheduler.policy.load import Counted, Learned
from scheduler.policy.mix import Part
from scheduler.policy.scale_memory import ScaleMemory, Told, read_memory, write_memory
from scheduler.policy.types import DemandId

MEMORY = ScaleMemory(
    Learned(Counted(7.0, (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0), 3.0, 1.5), (0.0, 1.0, 2.5, 0.0), 8.0, 10.0),
    Track((Peak(6.0, 9), Peak(7.0, 4)), 5.0),
    {DemandId(3): Part(2.5, (1.0, 4.0))},
    Told(9, 6.5),
)


@pytest.mark.parametrize("memory", [MEMORY, ScaleMemory()])
def test_what_is_written_is_read_back(memory: ScaleMemory) -> None:
    assert read_memory(orjson.loads(orjson.dumps(write_memory(memory)))) == memory


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        {"learned": 1},
        {**write_memory(MEMORY), "track": None},
        {**write_memory(MEMORY), "mix": [[1]]},
        {**write_memory(MEMORY), "told": {"slots": "many", "at": 1}},
    ],
)
def test_what_cannot_be_read_is_forgotten(written: dict[str, Any] | None) -> None:
    assert read_memory(written) == ScaleMemory()
