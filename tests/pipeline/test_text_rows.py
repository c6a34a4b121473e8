"""Text out of Arrow columns: what Python's own writer makes of them."""

import csv
import io

import pytest
from hypothesis import given, strategies as st

pa = pytest.importorskip("pyarrow")
from pglp_fast.pipeline.text_rows import join_rows  # noqa: E402

signs = st.text(st.sampled_from('ab,;|\t"é \\]^-'), max_size=6)


@given(st.lists(st.tuples(signs, signs, signs), max_size=8), st.sampled_from(",;|\t^-]\\"))
def test_values_come_back(rows, delimiter):
    """Quoted where they must be, and only there."""
    columns = [pa.array([r[k] for r in rows], pa.string()) for k in range(3)]
    got = join_rows(columns, delimiter, "\r\n").decode()
    assert list(csv.reader(io.StringIO(got, newline=""), delimiter=delimiter)) == [
        list(r) for r in rows
    ]
    plain = io.StringIO(newline="")
    csv.writer(plain, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    assert got == plain.getvalue()


def test_slices_and_tails():
    columns = [pa.array(["x", "a", "b", "y"]).slice(1, 2), pa.array(["x", "1", "2"]).slice(1)]
    assert join_rows(columns, ",", "\n", pa.array(["p,q", "r,s"], pa.large_string())) == (
        b"a,1,p,q\nb,2,r,s\n"
    )
    assert join_rows([pa.array([], pa.string())], ",", "\n") == b""
