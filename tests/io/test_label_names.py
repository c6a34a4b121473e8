"""One name for each person, however programs write it down."""

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import the_grid
from pglp_fast.io.labels import Coded, canonical, label_name, person_codes
from table_cases import plan

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

SPELLINGS = [  # of one person each
    ["7", "7.0", " 7", "7 ", "\t7.00\u00a0", "\ufeff7", "\ufeff 7"],
    ["José", "Jose\u0301", " José", "\ufeffJose\u0301"],
    ["-3", "-3.0"],
    ["0", "-0.0"],
    ["ab c", "ab c "],
]
APART = ["7", "07", "7.5", "7.", "7,0", "1.7.0", "7e0", "a", "A", "a b", "ab", "v1.0"]


@pytest.mark.parametrize("spellings", SPELLINGS)
def test_spellings_of_one_person(spellings):
    assert {canonical(text) for text in spellings} == {canonical(spellings[0])}
    assert all(label_name(text.encode()) == canonical(text) for text in spellings)
    assert Coded.of(np.array(spellings, object)).labels.tolist() == [canonical(spellings[0])]
    assert (person_codes(spellings) == 0).all()


def test_ordinary_labels_stay_as_they_are():
    """Would catch persons who are joined without need."""
    assert [canonical(text) for text in APART] == APART
    assert Coded.of(np.array(APART, object)).labels.tolist() == APART
    assert canonical(canonical(" 7.0 ")) == "7"


@pytest.mark.parametrize("spellings", SPELLINGS[:2])
def test_a_person_has_one_budget_under_all_spellings(tmp_path, spellings):
    """Frames, CSV and batches, one row each: one release fits. The released table keeps the user as
    it was written. Would catch a spelling that is a person of its own, with a budget of its own."""
    how = {"budget": 1.0, "ledger": tmp_path / "ledger", "on_error": "skip"}
    where, fits = the_grid().latlon([0])[0], []
    for k, user in enumerate(spellings * 2):
        row = {"user": [user], "time": ["2026-01-05"], "lat": where[:1], "lon": where[1:]}
        frame = pd.DataFrame(row)
        if k % 3 == 0:
            out = pf.release_table(frame, plan(**how))
            assert out["user"].tolist() == [user]
        elif k % 3 == 1:
            batches = pa.Table.from_pandas(frame).to_batches()
            out = next(pf.release_batches(batches, plan(**how))).to_pandas()
        else:
            frame.to_csv(tmp_path / "in.csv", index=False)
            pf.release_files(tmp_path / "in.csv", tmp_path / f"{k}.csv", plan(**how))
            out = pd.read_csv(tmp_path / f"{k}.csv", dtype=str)
        fits += out["released_status"].tolist()
    assert fits == ["alone"] + ["budget"] * (len(fits) - 1)
    ledger = pf.Ledger.load(tmp_path / "ledger")
    assert {ledger.index(user) for user in spellings} == {0} and len(ledger) == 1


def test_a_column_with_a_gap_has_whole_numbers(tmp_path):
    """What pandas writes for whole numbers where one is missing."""
    path = tmp_path / "t.csv"
    path.write_text("user,time,lat,lon\n7.0,2026-01-05,35,139\n,2026-01-05,35,139\n")
    read = pf.read_table(path, on_error="skip")
    assert read.users.tolist() == [7] and len(read) == 1
