"""One bar, in terminals and where it is asked for."""

from pglp_fast._util.progress import Progress


def test_a_bar_says_what_is_done(capsys):
    bar = Progress(1200, "rows", "reading ")
    bar.advance(200)
    bar.reach(1200)
    bar.close()
    out, err = capsys.readouterr()
    assert out == "" and "reading" in err and "100%" in err and "1,200 of 1,200 rows" in err


def test_no_bar_where_nobody_looks(capsys):
    """Standard error is no terminal here."""
    for shown in (None, False):
        bar = Progress(10, "rows", shown=shown)
        bar.advance(10)
        bar.close()
    assert capsys.readouterr() == ("", "")
