"""Golden results: what the public API and the command line gave when these were recorded.

A redesign must change none of them. ``python tests/golden/record.py [GROUP ...]`` records anew,
after a change that is meant; ``golden_store.py`` says how results are compared.
"""

import os
import sys

import golden_groups
import golden_store
import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
    reason="without the compiler floats may differ in their last bits, and it would take long",
)


@pytest.mark.parametrize("group", golden_groups.GROUPS)
def test_group(group):
    if group == "cli_help" and sys.version_info[:2] != (3, 11):
        pytest.skip("recorded with Python 3.11: others lay help out in another way")
    messages = golden_store.compare(group, golden_groups.results(group))
    shown = "\n  ".join(messages[:30])
    more = f"\n  and {len(messages) - 30} more" if len(messages) > 30 else ""
    assert not messages, f"{len(messages)} differences:\n  {shown}{more}"
