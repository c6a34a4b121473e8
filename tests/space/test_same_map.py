"""Whether two maps are the same, and what refuses to combine two that are not."""

import numpy as np
import pytest

import pglp_fast as pf

TOKYO, BEIJING = (35.68, 139.60), (39.90, 116.30)
XY = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def grid(origin=TOKYO, **options):
    return pf.Grid(3, 4, cell_km=options.pop("cell_km", 0.5), origin=origin)


def from_latlon(lat0):
    return pf.Points.from_latlon([lat0, lat0 + 0.01, lat0], [139.0, 139.0, 139.01])


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (grid(), grid(), True),
        (grid(None), grid(None), True),
        (grid(), pf.Grid.from_dict(grid().to_dict()), True),
        (grid(), grid(BEIJING), False),
        (grid(), grid(None), False),  # nobody has said where the second one lies
        (grid(), grid(cell_km=0.6), False),
        (pf.Grid(3, 4), pf.Grid(4, 3), False),
        (pf.Points(XY), pf.Points(XY.copy()), True),
        (pf.Points(XY), pf.Points(XY + 7.0), False),
        (pf.Points(XY), pf.Points(XY[[0, 2, 1]]), False),
        (pf.Points(XY), pf.Points(XY, resolution_km=0.01), False),
        (from_latlon(35.0), from_latlon(35.0), True),
        (from_latlon(35.0), from_latlon(36.0), False),
        (
            pf.Grid(1, 3, cell_km=1.0),
            pf.Points([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], resolution_km=1.0),
            True,
        ),
    ],
)
def test_same_map(a, b, same):
    assert a.same_map(b) == b.same_map(a) == same
    assert bool(a.difference(b)) != same


def model(g):
    return pf.MobilityModel.fit(g, [[0, 1, 2]])


def tracks():
    times = np.array([0, 300, 600], "datetime64[s]")
    return pf.Tracks.of(["a"] * 3, times, [35.681] * 3, [139.601] * 3)


COMBINED = {
    "G & H": lambda a, b: pf.blocks(a, 2) & pf.blocks(b, 2),
    "G | H": lambda a, b: pf.blocks(a, 2) | pf.blocks(b, 2),
    "C & D": lambda a, b: pf.Domain(a, [0]) & pf.Domain(b, [0]),
    "C | D": lambda a, b: pf.Domain(a, [0]) | pf.Domain(b, [0]),
    "C - D": lambda a, b: pf.Domain(a, [0]) - pf.Domain(b, [0]),
    "constrain": lambda a, b: pf.blocks(a, 2).constrain(pf.Domain(b, [0, 1])),
    "disconnected": lambda a, b: pf.disconnected(pf.blocks(a, 2), pf.Domain(b, [0, 1])),
    "isolated": lambda a, b: pf.isolated(pf.blocks(a, 2), pf.Domain(b, [0, 1])),
    "repair": lambda a, b: pf.repair(pf.blocks(a, 2), pf.Domain(b, [0, 1])),
    "mechanism": lambda a, b: pf.PPIM(pf.blocks(a, 2), epsilon=1, domain=pf.Domain(b, [0, 1])),
    "bound_to": lambda a, b: pf.KRR(pf.blocks(a, 2), epsilon=1).bound_to(pf.blocks(b, 2)),
    "TraceReleaser": lambda a, b: pf.TraceReleaser(pf.blocks(a, 2), model(b), epsilon=1),
    "fit": lambda a, b: pf.MobilityModel.fit(b, tracks().resample(a, "5min")),
    "estimate_utility": lambda a, b: pf.estimate_utility(
        b, *[tracks().resample(a, "5min")] * 2, region=2
    ),
}


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("other", [BEIJING, None])
def test_maps_of_two_places_do_not_mix(name, other):
    """A policy of Tokyo used to take a model of Beijing."""
    COMBINED[name](grid(), grid())
    with pytest.raises(pf.PGLPError):
        COMBINED[name](grid(), grid(other))


def test_the_message_says_where_they_lie():
    with pytest.raises(pf.InvalidPolicy, match=r"latitude 35\.68, .* latitude 39\.9, "):
        pf.blocks(grid(), 2) & pf.blocks(grid(BEIJING), 2)


def test_equal_graphs_and_domains_lie_on_one_map():
    assert pf.blocks(grid(), 2) != pf.blocks(grid(BEIJING), 2)
    assert pf.Domain(grid(), [1]) != pf.Domain(grid(BEIJING), [1])


@pytest.mark.parametrize(
    ("a", "b"),
    [(grid(), grid(BEIJING)), (grid(), grid(None)), (pf.Points(XY), pf.Points(XY + 7.0))],
)
def test_a_saved_model_is_of_one_place(tmp_path, a, b):
    model(a).save(tmp_path / "m")
    assert pf.MobilityModel.load(a, tmp_path / "m").locations is a
    with pytest.raises(pf.InvalidTransition, match="lies elsewhere"):
        pf.MobilityModel.load(b, tmp_path / "m")


def test_a_model_that_was_saved_without_its_place_is_still_read(tmp_path):
    """Files of 0.1.0: a grid's place is in its facts, that of points was not kept."""
    from pglp_fast._util.storage import read_arrays, write_arrays

    for a, b in ((grid(), grid(BEIJING)), (pf.Points(XY), None)):
        model(a).save(tmp_path / "m")
        arrays, facts = read_arrays(tmp_path / "m", "mobility model")
        for name in ("place", "kind", "version"):
            del facts[name]
        write_arrays(tmp_path / "m", "mobility model", arrays, facts)
        pf.MobilityModel.load(a, tmp_path / "m")
        if b is not None:
            with pytest.raises(pf.InvalidTransition, match="lies elsewhere"):
                pf.MobilityModel.load(b, tmp_path / "m")
