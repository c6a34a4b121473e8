"""The README is read to its end, and what it tells a new user to type works on a table."""

import re
import shlex

from cases import ROOT, large
from pglp_fast import cli

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short_and_says_first_what_this_is():
    """It was 166 lines, with tables of names and of speeds before anything to try."""
    assert TEXT.count("\n") <= 110
    head = TEXT.split("```")[0]
    first = head.split("\n\n")[1]
    assert len(re.findall(r"[.](?:\s|$)", first)) == 2  # two sentences
    for name in ("tkgsn/PGLP", "privkit", "diffprivlib", "libqif", "benchmarks/alternatives.py"):
        assert name in TEXT, name
    first, frames = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    assert first.count("\n") <= 8 + 1 and len(frames.strip().splitlines()) <= 5


def test_it_claims_no_speed_that_the_page_on_speed_does_not_have():
    claimed = re.search(r"^\| Laplace noise on locations.*$", TEXT, re.M)[0]
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for figure in re.findall(r"([\d.,]+(?: million)?) a second", claimed):
        assert f"| {figure} |" in page, figure


@large
def test_from_a_table_to_a_file_a_picture_and_a_sentence(tmp_path, monkeypatch, capsys):
    """Every command of the README on a table, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    cli.main(["simulate", "-o", "trips.csv", "--users", "20", "--steps", "30"])
    block = next(b for b in re.findall(r"^```sh\n(.*?)^```", TEXT, re.M | re.S) if "release" in b)
    capsys.readouterr()
    for line in block.splitlines():
        assert cli.main(shlex.split(line, comments=True)[1:]) == 0, line
    said = capsys.readouterr().out
    assert "Whoever sees a release knows in which group of places somebody is" in said
    assert (tmp_path / "private.csv").read_text().startswith("user,time,released_lat")
    assert "<canvas" in (tmp_path / "map.html").read_text()
