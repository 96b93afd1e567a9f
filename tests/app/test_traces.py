"""What a visitor brings as a file is within bounds."""

import pytest

from app import traces
from app.settings import LIMITS
from engine.errors import UserError


@pytest.mark.parametrize("check", [traces.check, traces.check_race])
def test_a_file_beyond_the_bound_is_refused_before_it_is_read(check, monkeypatch):
    monkeypatch.setattr(traces, "read_trace", lambda text: pytest.fail("it was read"))
    monkeypatch.setattr(traces, "is_race", lambda text: pytest.fail("it was read"))
    with pytest.raises(
        UserError, match=rf"^That file is larger than {LIMITS.trace_megabytes} MB\.$"
    ):
        check("é" * (LIMITS.trace_bytes // 2) + "\n")
