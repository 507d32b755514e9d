"""What a cron expression says in words, and that it says nothing where it might be wrong."""

from __future__ import annotations

import pytest

from scheduler.policy.cron import Cron, parse
from scheduler.policy.cron_words import in_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* * * * *", "every minute"),
        ("*/10 * * * *", "every 10 minutes"),
        ("*/7 * * * *", None),
        ("*/1 * * * *", None),
        ("0-30/10 * * * *", None),
        ("5 * * * *", "every hour at minute 5"),
        ("5,35 * * * *", None),
        ("30 2 * * *", "every day at 02:30"),
        ("0 9,17 * * 1-5", "on weekdays at 09:00 and 17:00"),
        ("0 9 * * MON-FRI", "on weekdays at 09:00"),
        ("0 9 * * mon,3,7", "on Mondays, Wednesdays and Sundays at 09:00"),
        ("0 9 * * 1-3", None),
        ("0 9 1,15 * *", "on day 1 and 15 of every month at 09:00"),
        ("0 9 L * *", None),
        ("0 9 1 * 1", None),
        ("0 9 1 6 *", None),
        ("0 */6 * * *", "every 6 hours at minute 0"),
        ("0 */5 * * *", None),
        ("*/5 */6 * * *", None),
        ("0 */6 * * 1", None),
        ("0 9-17 * * *", None),
        ("0 1,2,3,4,5 * * *", None),
        ("*/5 9 * * *", None),
        ("*/15 * * * * *", "every 15 seconds"),
        ("*/15 * 3 * * *", None),
        ("0 30 2 * * *", "every day at 02:30"),
    ],
)
def test_the_usual_expressions_are_said_in_words_and_no_other(text: str, said: str | None) -> None:
    cron = parse(text)
    assert isinstance(cron, Cron)
    assert in_words(cron) == said
