"""Evidence that is none, and messages that grow."""

import numpy as np
import pytest

from pglp_fast._kernels.attack import records


@pytest.mark.parametrize(
    ("cells", "logs", "flaw"),
    [
        ([0, 4, 2], [0.0, -np.inf, -1.0], (-1, 0)),
        ([0, 5, 2], [0.0, 0.0, 0.0], (0, 1)),
        ([0, 4, -1], [0.0, 0.0, 0.0], (2, 1)),
        ([4, 4, 2], [0.0, 0.0, 0.0], (0, 2)),
        ([0, 4, 2], [0.0, 0.0, np.nan], (2, 3)),
        ([0, 4, 2], [np.inf, 0.0, 0.0], (0, 3)),
    ],
)
def test_flaws(cells, logs, flaw):
    start = np.array([0, 2, 2, 3])
    assert records.first_flaw(start, np.array(cells, np.int32), np.array(logs), 5) == flaw


def test_most_rows():
    first = np.array([0, 2, 2, 7, 8])
    assert records.most_rows(first, 0, 4) == 5
    assert records.most_rows(first, 0, 2) == 2
    assert records.most_rows(first, 1, 2) == 0


def test_messages_grow_and_keep_what_is_there():
    messages = records.make_messages(4)
    room = len(messages.cells)
    messages.cells[:room] = np.arange(room)
    messages.logs[:room] = np.arange(room)
    assert records.with_states(messages, room - 1, 1).cells is messages.cells
    more = records.with_states(messages, room, 1)
    assert len(more.cells) > room
    assert {len(array) for array in more[1:]} == {len(more.cells)}
    assert more.cells[:room].tolist() == more.logs[:room].tolist() == list(range(room))
