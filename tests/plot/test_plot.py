"""Pictures: that each draws what it claims, on every kind of map.

Artists are inspected, never pixels.
"""

import subprocess
import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import LogNorm, to_rgba
from scipy import stats

import pglp_fast as pf
from cases import ROOT, large
from naive import hull
from pglp_fast import plot, synthetic
from pglp_fast.plot.series import looks
from pglp_fast.plot.style import fills

matplotlib.use("Agg")

SQUARE = pf.Grid(6, 6, cell_km=0.5)
FLAT = pf.Grid(4, 9, cell_km=(0.5, 0.2))  # cells wider than high
POINTS = pf.Points(
    np.random.default_rng(5).normal(size=(40, 2)) * [3, 1] + [100, -50], resolution_km=0.01
)
MAPS = [SQUARE, FLAT, POINTS]


@pytest.fixture(autouse=True)
def _close():
    yield
    plot.pyplot().close("all")


@pytest.fixture
def ax():
    return plot.pyplot().subplots(layout="constrained")[1]


def xy_of(locations, cells):
    """From the definition: f(s) = (col dx, row dy) plus the map's offset."""
    return locations.lattice[cells] * np.array(locations.scale) + np.array(locations.offset_km)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()] if axes.get_legend() else []


def line(axes, label):
    """The coordinates of the line that has this label."""
    [found] = [one for one in axes.lines if one.get_label().startswith(label)]
    return np.column_stack(found.get_data())


def is_a_map(axes):
    return (
        axes.get_aspect() == 1
        and axes.get_xlabel() == "east (km)"
        and axes.get_ylabel() == "north (km)"
    )


def nothing_is_cut_off(figure):
    figure.canvas.draw()
    needed = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert (
        needed.x0 > -0.01
        and needed.y0 > -0.01
        and needed.x1 < width + 0.01
        and needed.y1 < height + 0.01
    ), needed


def policy_on(locations):
    return (
        pf.blocks(locations, 3)
        if isinstance(locations, pf.Grid)
        else pf.categories(locations, np.arange(40) % 3, 2.0)
    )


# -- in general


@pytest.mark.parametrize("locations", MAPS, ids=["square", "flat", "points"])
def test_every_map_takes_an_ax_and_returns_it(locations):
    """A function that draws elsewhere, loses the aspect or the units would fail, on a grid, wide
    cells or points."""
    G = policy_on(locations)
    n = locations.size
    p = np.full(n, 1 / n)
    m, subplots = pf.PPIM(G, epsilon=1.0), plot.pyplot().subplots
    calls = {
        "map_axes": lambda ax: plot.map_axes(locations, ax),
        "heat": lambda ax: plot.heat(locations, np.arange(n), ax=ax, label="people"),
        "policy": lambda ax: plot.policy(G, ax=ax, basemap=np.arange(n), basemap_label="people"),
        "noise": lambda ax: plot.noise(m, 7, ax=ax),
        "releases": lambda ax: plot.releases(m, 7, 20, ax=ax),
        "posterior": lambda ax: plot.posterior(locations, p, true=1, released=2, ax=ax),
        "trace": lambda ax: plot.trace(locations, [0, 1, 2], [1, 1, -1], ax=ax),
        "exposure": lambda ax: plot.exposure(G, pf.Domain(locations, [0, 1, 8, 20]), ax=ax),
    }
    for name, call in calls.items():
        for layout in (None, "constrained"):
            given = subplots(layout=layout)[1]
            assert call(given) is given, name
            assert is_a_map(given), name
            given.figure.canvas.draw()
        made = call(None)
        assert is_a_map(made), name
        assert made.figure.get_layout_engine() is not None
        nothing_is_cut_off(made.figure)
        plot.pyplot().close("all")


def test_all_names_are_there_and_none_prints(capsys):
    """The names that programs use, those of before this was a package among them."""
    for name in plot.__all__:
        assert getattr(plot, name) is not None
    old = {
        "COLOURS",
        "MARKERS",
        "MAX_EDGES",
        "pyplot",
        "new_axes",
        "map_axes",
        "heat",
        "exposure",
        "releases",
        "error_curves",
    }
    assert old <= set(plot.__all__)
    plot.policy(pf.blocks(SQUARE, 3))
    assert capsys.readouterr() == ("", "")


def test_without_matplotlib_the_error_says_what_to_install():
    """An ImportError from deep inside would not."""
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "import pglp_fast as pf\n"
        "from pglp_fast.experiments.demo import run_demo\n"
        "g = pf.Grid(2, 2)\n"
        "for call in (lambda: pf.plot.heat(g, [1, 2, 3, 4]), lambda: pf.plot.over_time({'a': "
        "[1.0]}),\n"
        "             lambda: pf.plot.policy(pf.blocks(g, 2)), lambda: pf.plot.trace(g, [0], "
        "[1]),\n"
        "             lambda: pf.plot.posterior(g, [1, 0, 0, 0]),\n"
        "             lambda: pf.plot.noise(pf.PPIM(pf.blocks(g, 2), epsilon=1.0), 0),\n"
        "             lambda: pf.plot.privacy_utility([1.0], {'a': [1.0]}, {'a': [1.0]}),\n"
        "             lambda: pf.experiments.run('policies', quick=True, progress=False),\n"
        "             lambda: run_demo()):\n"
        "    try: call()\n"
        "    except pf.MissingPackage as error:\n"
        "        assert 'pip install matplotlib' in str(error), error\n"
        "    else: raise SystemExit('no error')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""  # said before the work, not behind it


def test_importing_the_package_imports_no_matplotlib():
    program = (
        "import sys, pglp_fast; assert 'pglp_fast.plot' not in sys.modules and 'matplotlib' "
        "not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_fills_are_all_different():
    """Shades that repeat would give neighbouring components one colour."""
    for count in (1, 6, 7, 13, 50):
        assert len(np.unique(fills(count), axis=0)) == count


# -- heat


def test_heat_shows_each_value_where_its_cell_is(ax):
    """Rows upside down, or dx and dy swapped, would fail."""
    values = np.arange(36.0)
    plot.heat(FLAT, values, ax=ax, label="people per km2")
    [image] = ax.images
    west, east, south, north = image.get_extent()
    picture = np.asarray(image.get_array())
    for cell in (0, 8, 35):
        x, y = xy_of(FLAT, cell)
        row = int((y - south) / (north - south) * 4)
        col = int((x - west) / (east - west) * 9)
        assert image.origin == "lower"
        assert picture[row, col] == values[cell]
    assert np.allclose([*ax.get_xlim(), *ax.get_ylim()], [-0.25, 4.25, -0.1, 0.7])
    [bar] = ax.child_axes
    assert bar.get_ylabel() == "people per km2"


def test_heat_on_points_is_a_dot_for_each_that_has_a_value(ax):
    values = np.arange(40.0)
    values[3] = np.nan
    plot.heat(POINTS, values, ax=ax)
    [dots] = ax.collections
    assert np.allclose(dots.get_offsets(), np.delete(xy_of(POINTS, np.arange(40)), 3, axis=0))
    assert (np.asarray(dots.get_array()) == np.delete(values, 3)).all()


def test_heat_refuses_what_is_not_one_value_a_location():
    with pytest.raises(
        pf.InvalidParameter, match=r"values has shape \(35,\): give one number for each of the 36"
    ):
        plot.heat(SQUARE, np.arange(35))
    with pytest.raises(pf.InvalidParameter, match="values must be numbers"):
        plot.heat(SQUARE, ["a"] * 36)


# -- policy


def colours_drawn(axes, locations, cells):
    """The colour of each cell as it is drawn."""
    if not isinstance(locations, pf.Grid):
        [dots] = [c for c in axes.collections if isinstance(c, PathCollection)]
        face = dots.get_facecolors()
        at = {
            tuple(np.round(xy, 6)): tuple(c) for xy, c in zip(np.asarray(dots.get_offsets()), face)
        }
        return [at[tuple(np.round(xy, 6))] for xy in xy_of(locations, cells)]
    [image] = axes.images
    west, _, south, _ = image.get_extent()
    picture, (dx, dy) = np.asarray(image.get_array()), locations.scale
    return [
        tuple(picture[int((y - south) / dy), int((x - west) / dx)].tolist())
        for x, y in xy_of(locations, cells)
    ]


@pytest.mark.parametrize(
    "graph",
    [
        pf.blocks(pf.Grid(12, 15, cell_km=(0.5, 0.3)), 3),
        pf.categories(pf.Grid(12, 12), np.random.default_rng(0).integers(-1, 4, 144), 6),
        pf.PolicyGraph.from_edges(pf.Grid(5, 5), [[0, 1], [1, 2], [5, 6], [10, 17], [24, 3]]),
    ],
    ids=["blocks", "categories", "edges"],
)
def test_components_side_by_side_differ_in_colour_and_a_component_has_one(graph):
    """A colouring that ignores diagonals, or colours cells and not components, would fail."""
    g, label = graph.locations, graph.components
    drawn = colours_drawn(plot.policy(graph), g, np.arange(g.size))
    by_component = {}
    alone = graph.degrees() == 0
    for cell in range(g.size):
        if not alone[cell]:
            assert by_component.setdefault(label[cell], drawn[cell]) == drawn[cell]
        for other in range(cell):
            touch = np.abs(g.lattice[cell] - g.lattice[other]).max() == 1
            if touch and label[cell] != label[other] and not (alone[cell] or alone[other]):
                assert drawn[cell] != drawn[other]
    assert len({drawn[cell] for cell in np.flatnonzero(alone)}) <= 1  # grey


def test_components_of_points_among_each_other_differ_in_colour():
    """Two components whose members are nearest to each other must not look like one."""
    P = pf.Points([[0, 0], [1, 0], [0.2, 0.1], [1.1, 0.2], [9, 9], [9, 8]])
    G = pf.PolicyGraph.from_edges(P, [[0, 1], [2, 3], [4, 5]])
    drawn = colours_drawn(plot.policy(G), P, np.arange(6))
    assert drawn[0] == drawn[1] != drawn[2] == drawn[3]


@pytest.mark.parametrize("locations", MAPS, ids=["square", "flat", "points"])
def test_cliques_are_drawn_as_the_hulls_of_their_members_in_km(locations):
    """All k^2 edges instead of a hull, a hull in cells instead of km, or a lost offset would
    fail."""
    G = policy_on(locations)
    plotted = plot.policy(G)
    [outlines] = [c for c in plotted.collections if isinstance(c, PolyCollection)]
    drawn = {frozenset(map(tuple, np.round(path.vertices, 6))) for path in outlines.get_paths()}
    expected = set()
    for c in range(G.n_cliques):
        members = np.flatnonzero(G.cliques == c)
        corners = np.array(hull(locations.lattice[members].tolist()))
        expected.add(
            frozenset(
                map(
                    tuple,
                    np.round(
                        corners * np.array(locations.scale) + np.array(locations.offset_km), 6
                    ),
                )
            )
        )
    assert drawn == expected
    assert "clique, by its hull" in labels(plotted)


def test_other_edges_are_drawn_as_lines(ax):
    plot.policy(pf.blocks(FLAT, 3).with_edges([[0, 35], [5, 20]]), ax=ax)
    [edges] = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert np.allclose(edges.get_segments(), xy_of(FLAT, np.array([[0, 35], [5, 20]])))
    assert {"edge", "clique, by its hull"} == set(labels(ax))
    plain = plot.policy(pf.blocks(FLAT, 3).with_edges([[0, 35]]), edges=False)
    assert not plain.collections
    assert not labels(plain)


def test_a_part_of_the_map_keeps_the_components_of_the_whole(ax):
    """Constraining the policy instead would paint a cell grey whose partners are not shown."""
    G = pf.blocks(SQUARE, 3)
    plot.policy(G, cells=pf.Domain(SQUARE, [0, 1, 14]), ax=ax)
    [image] = ax.images
    assert np.asarray(image.get_array()).shape == (3, 3, 4)
    assert (np.asarray(image.get_array())[..., 3] > 0).sum() == 3
    assert "no edges" not in labels(ax)
    corner = plot.policy(G, cells=[35])  # its partners are out of the picture
    assert "no edges" not in labels(corner)
    assert np.allclose([*corner.get_xlim(), *corner.get_ylim()], [2.25, 2.75, 2.25, 2.75])


def test_colours_by_category(ax):
    """The same category far apart has one colour, with its name; what has none is grey."""
    label = np.arange(36) % 3 - 1
    plot.policy(pf.categories(SQUARE, label, 3), by=label, names=["food", "shop"], ax=ax)
    drawn = colours_drawn(ax, SQUARE, np.arange(36))
    assert len({drawn[i] for i in np.flatnonzero(label == 0)}) == 1
    assert len(set(drawn)) == 3
    assert {"food", "shop", "no edges"} <= set(labels(ax))
    mixed = plot.policy(pf.blocks(SQUARE, 3), by=label, names=["food", "shop"])
    assert "no category" in labels(mixed)


@large
def test_a_million_cells_are_drawn_and_what_is_not_is_said():
    """Edge by edge this would take minutes; leaving edges out in silence would mislead."""
    big = pf.Grid(1000, 1000, cell_km=0.1)
    assert labels(plot.policy(pf.blocks(big, 5))) == [
        "(40,000 cliques, too many to outline: choose cells=...)"
    ]
    assert labels(plot.policy(pf.neighbours8(big))) == [
        "(3,994,002 edges, too many to draw: choose cells=...)"
    ]
    with pytest.raises(
        pf.TooLarge, match=r"40000 cliques would be a blot: draw a part of the map \(cells=\.\.\.\)"
    ):
        plot.policy(pf.blocks(big, 5), edges=True)
    with pytest.raises(pf.TooLarge, match="3994002 edges would be a blot"):
        plot.policy(pf.neighbours8(big), edges=True)


def test_policy_refuses_what_it_cannot_draw():
    G = pf.blocks(SQUARE, 3)
    with pytest.raises(pf.InvalidPolicy, match="must be a PolicyGraph, got Grid"):
        plot.policy(SQUARE)
    with pytest.raises(pf.InvalidDomain, match="not a Domain over"):
        plot.policy(G, cells=pf.Domain(FLAT, [0]))
    with pytest.raises(pf.InvalidLocation, match=r"cells\[0\] = 36 is not one of the 36"):
        plot.policy(G, cells=[36])
    with pytest.raises(pf.InvalidParameter, match="no location to draw"):
        plot.policy(G, cells=[])
    with pytest.raises(pf.InvalidParameter, match="basemap has shape"):
        plot.policy(G, basemap=[1.0])
    with pytest.raises(pf.InvalidParameter, match="by has shape"):
        plot.policy(G, by=[1])
    with pytest.raises(pf.InvalidParameter, match="names has 1 entries, but categories go up to 2"):
        plot.policy(G, by=np.arange(36) % 3, names=["one"])


# -- noise


@pytest.mark.parametrize("locations", MAPS, ids=["square", "flat", "points"])
@pytest.mark.parametrize("s", [0, 7])
def test_noise_body_is_the_sensitivity_hull_in_km_around_s(locations, s):
    """K in lattice units, about the map's origin, or of another component would fail."""
    G = policy_on(locations)
    drawn = line(plot.noise(pf.PPIM(G, epsilon=1.0), s), "noise polygon K")
    member = np.flatnonzero(G.components == G.components[s])
    diffs = (locations.lattice[member][:, None] - locations.lattice[member][None]).reshape(-1, 2)
    corners = np.array(hull(diffs.tolist())) * np.array(locations.scale) + xy_of(locations, s)
    assert np.allclose(drawn[0], drawn[-1])  # closed
    assert {tuple(np.round(v, 6)) for v in drawn} == {tuple(np.round(v, 6)) for v in corners}


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_contours_hold_the_share_of_the_noise_that_they_say(ax, share):
    """Against draws: a direction by cone measure (here a square: uniform on its sides) and a
    Gamma(2, 1/eps) radius."""
    eps = 1.7
    plot.noise(pf.PPIM(pf.blocks(SQUARE, 3), epsilon=eps), 7, shares=(share,), ax=ax)
    radius = (
        np.abs(line(ax, f"{100 * share:.0f} % of the noise")[:, 0] - 0.5).max() / 1.0
    )  # K reaches 2 cells of 0.5 km
    assert stats.gamma(2, scale=1 / eps).cdf(radius) == pytest.approx(share, abs=1e-9)
    on_a_line = plot.noise(
        pf.PPIM(pf.PolicyGraph.from_edges(SQUARE, [[0, 1]]), epsilon=eps), 0, shares=(share,)
    )
    radius = np.abs(line(on_a_line, f"{100 * share:.0f} % of the noise")[:, 0]).max() / 0.5
    assert stats.laplace(scale=1 / eps).cdf(radius) - stats.laplace(scale=1 / eps).cdf(
        -radius
    ) == pytest.approx(share, abs=1e-9)


def test_laplace_noise_shows_its_diamond_and_the_hull(ax):
    m = pf.PLM(pf.blocks(FLAT, 3), epsilon=1.0)
    plot.noise(m, 0, ax=ax)
    S = 2 * 0.5 + 2 * 0.2  # the longest edge of a 3 x 3 block, |dx| + |dy|
    assert {tuple(np.round(v, 9)) for v in line(ax, "noise polygon K")} == {
        (S, 0),
        (-S, 0),
        (0, S),
        (0, -S),
    }
    assert np.abs(line(ax, "sensitivity hull")).max(axis=0) == pytest.approx([1.0, 0.4])
    assert ax.get_title() == "P-LM, epsilon = 1"


def remapped(G, *, epsilon):
    return pf.Remapped(pf.PPIM(G, epsilon=epsilon))


@pytest.mark.parametrize("make", [pf.KRR, pf.Optimal, pf.GraphExponential, remapped])
def test_mechanisms_by_table_show_their_probabilities_and_no_body(make):
    """Probabilities in another order than outputs, or a K that is not there, would fail."""
    m = make(pf.blocks(FLAT, 3), epsilon=1.0)
    ax = plot.noise(m, 10)
    outputs, p = m.pmf(10)
    [image] = ax.images
    picture = np.asarray(np.ma.filled(image.get_array(), 0.0))
    assert np.allclose(picture.reshape(-1), p)  # a 3 x 3 block, row by row as its outputs are
    assert not [text for text in labels(ax) if "noise" in text]
    written = {
        t.get_position() if not hasattr(t, "xy") else tuple(np.round(t.xy, 9)): t.get_text()
        for t in ax.texts
    }
    for z, value in zip(outputs, p):
        if z != 10 and value > 0.0005:
            assert float(written[tuple(np.round(xy_of(FLAT, z), 9))]) == pytest.approx(
                value, abs=5e-4
            )
    [bar] = ax.child_axes
    assert bar.get_ylabel() == "Pr(z | s = 10)"


def test_noise_on_points_is_a_dot_for_each_output(ax):
    G = pf.complete(POINTS, [3, 5, 9, 17])
    m = pf.PPIM(G, epsilon=2.0)
    plot.noise(m, 5, ax=ax)
    [dots] = ax.collections
    outputs, p = m.pmf(5)
    assert np.allclose(dots.get_offsets(), xy_of(POINTS, outputs))
    assert np.allclose(dots.get_array(), p)


def test_noise_where_there_is_none_and_where_there_is_too_much():
    """A lone location has no K; of 40,000 outputs no exact row is made, the noise is shown all
    the same."""
    alone = plot.noise(pf.PPIM(pf.blocks(SQUARE, 3), epsilon=1.0, domain=pf.Domain(SQUARE, [0])), 0)
    assert labels(alone) == ["true location 0, Pr(s | s) = 1"]
    big = pf.Grid(80, 80)
    many = plot.noise(pf.PPIM(pf.blocks(big, 3), epsilon=1.0, calibration="graph"), 1000)
    assert not many.images
    assert {"noise polygon K", "50 % of the noise", "true location 1000"} == set(labels(many))
    assert isinstance(
        plot.noise(pf.PPIM(pf.blocks(SQUARE, 3), epsilon=1.0), 0, log=True).images[0].norm, LogNorm
    )


def test_noise_refuses():
    m = pf.PPIM(pf.blocks(SQUARE, 3), epsilon=1.0, domain=pf.Domain(SQUARE, [0, 1]))
    with pytest.raises(pf.InvalidDomain, match="location 5 is outside the domain"):
        plot.noise(m, 5)
    with pytest.raises(pf.InvalidParameter, match="shares must be above 0 and below 1, got 1"):
        plot.noise(m, 0, shares=(1,))
    with pytest.raises(pf.InvalidParameter, match="must be a mechanism, got PolicyGraph"):
        plot.noise(pf.blocks(SQUARE, 3), 0)


def test_releases_count_and_need_no_body(ax):
    """Counts that do not add up to n would fail, as would a table mechanism."""
    plot.releases(pf.KRR(pf.blocks(SQUARE, 3), epsilon=1.0), 7, 50, ax=ax)
    [dots] = ax.collections
    assert ((dots.get_sizes() - 4) / 400 * 50).sum() == pytest.approx(50)
    assert ax.get_legend_handles_labels()[1] == ["released", "true location"]
    own = plot.releases(pf.PLM(pf.blocks(SQUARE, 3), epsilon=1.0), 7, 20)
    assert labels(own) == ["released", "noise polygon K", "true location"]


# -- posterior


def test_posterior_is_drawn_where_it_is_and_zoomed_to_its_mass(ax):
    p = np.zeros(36)
    p[[14, 15, 20]] = 0.6, 0.3, 0.1
    plot.posterior(SQUARE, p, true=14, released=21, ax=ax)
    assert np.allclose(line(ax, "true location"), [xy_of(SQUARE, 14)])
    assert np.allclose(line(ax, "released"), [xy_of(SQUARE, 21)])
    assert set(labels(ax)) == {"true location", "released", "impossible"}
    picture = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert np.allclose(picture, [[0.6, 0.3], [0.1, np.nan]], equal_nan=True)
    west, east = ax.get_xlim()
    assert -0.25 < west < 0.75 and 1.75 < east < 2.75  # around the mass, not the whole map
    whole = plot.posterior(SQUARE, p, share=None)
    assert np.allclose(whole.get_xlim(), [-0.25, 2.75])
    [bar] = ax.child_axes
    assert bar.get_ylabel() == "probability"
    certain = np.zeros(36)
    certain[:30] = 1 / 30  # the last row is impossible, and out of the picture
    assert labels(plot.posterior(SQUARE, certain, share=0.1, true=0)) == ["true location"]


def test_posterior_on_a_logarithmic_scale(ax):
    """A tiny probability must take the lowest colour, not vanish as if it were impossible."""
    p = np.full(40, 1e-300)
    p[0] = 1
    plot.posterior(POINTS, p, log=True, ax=ax)
    [dots] = ax.collections
    assert isinstance(dots.norm, LogNorm)
    assert (dots.norm.vmin, dots.norm.vmax) == (1e-6, 1)
    assert np.asarray(dots.get_array()).min() == 1e-6
    assert len(dots.get_offsets()) == 40
    assert isinstance(
        plot.posterior(SQUARE, np.full(36, 1 / 36), log=True).images[0].norm,
        matplotlib.colors.Normalize,
    )


def test_posterior_refuses_what_is_no_distribution():
    with pytest.raises(pf.InvalidParameter, match="p sums to 36: it must be a distribution"):
        plot.posterior(SQUARE, np.ones(36))
    with pytest.raises(pf.InvalidParameter, match=r"p\[2\] = -1.0 is not a probability"):
        plot.posterior(SQUARE, [1, 1, -1, *[0] * 33])
    with pytest.raises(pf.InvalidParameter, match=r"p\[0\] = nan is not"):
        plot.posterior(SQUARE, np.full(36, np.nan))
    with pytest.raises(pf.InvalidParameter, match=r"p has shape \(4,\)"):
        plot.posterior(SQUARE, np.ones(4) / 4)
    with pytest.raises(pf.InvalidLocation, match=r"true\[0\] = 36"):
        plot.posterior(SQUARE, np.full(36, 1 / 36), true=36)
    with pytest.raises(pf.InvalidParameter, match="share must be"):
        plot.posterior(SQUARE, np.full(36, 1 / 36), share=1.5)


# -- traces


@pytest.mark.parametrize("locations", MAPS, ids=["square", "flat", "points"])
def test_traces_are_drawn_step_by_step_with_gaps(locations):
    """A line across a missing step, or a trace in cells instead of km, would fail."""
    true, released = np.array([0, 1, -1, 8, 9]), np.array([1, 2, 3, -1, 9])
    ax = plot.trace(locations, true, released, surrogate=[False, True, False, False, True])
    for label, cells in (("true", true), ("released", released)):
        expected = np.where((cells >= 0)[:, None], xy_of(locations, cells), np.nan)
        assert np.allclose(line(ax, label), expected, equal_nan=True)
    assert np.allclose(line(ax, "surrogate"), xy_of(locations, true[[1, 4]]))
    [links] = [c for c in ax.collections if isinstance(c, LineCollection)]
    steps = [0, 1, 4]  # where both are known
    assert np.allclose(
        links.get_segments(),
        np.stack([xy_of(locations, true[steps]), xy_of(locations, released[steps])], axis=1),
    )
    assert [t.get_text() for t in ax.texts] == ["first", "last"]


def test_domains_on_the_way_have_maps_of_their_own():
    """What a stream says at each step is what its panel shows: C_t, its components, the repairs,
    surrogates."""
    rng = np.random.default_rng(0)
    G = pf.blocks(SQUARE, 3)
    M = pf.MobilityModel.fit(SQUARE, rng.integers(0, 36, (30, 6)), unseen="stay")
    stream = pf.TraceReleaser(G, M, epsilon=1.0, delta=0.3, rng=4).start(1)
    true = rng.integers(0, 36, 5)
    released, surrogate, domains, policies = [], [], {}, {}
    for t in range(5):
        step = stream.step(true[t : t + 1])
        released.append(int(step.released[0]))
        surrogate.append(bool(step.surrogate[0]))
        domains[t], policies[t] = stream.domain(0), stream.policy(0)
    assert any(surrogate)
    axes = plot.trace(
        SQUARE, true, released, surrogate=surrogate, domains=domains, policies=policies
    )
    assert len(axes) == 6 and is_a_map(axes[0])
    for t, panel in enumerate(axes[1:]):
        title = panel.get_title()
        assert title.startswith(f"t = {t}: {len(domains[t])} location")
        assert title.endswith(", surrogate") == surrogate[t]
        assert (np.asarray(panel.images[0].get_array())[..., 3] > 0).sum() == len(domains[t])
        # names and a bar would lie on the places, and stand beside already
        assert panel.get_aspect() == 1 and not panel.get_xlabel() and not panel.texts
        extra = [c for c in panel.collections if isinstance(c, LineCollection)]
        assert sum(len(c.get_segments()) for c in extra) == len(policies[t].extra_edges())
        marks = [tuple(np.round(np.ravel(one.get_data()), 6)) for one in panel.lines]
        assert tuple(np.round(xy_of(SQUARE, true[t]), 6)) in marks
        assert tuple(np.round(xy_of(SQUARE, released[t]), 6)) in marks
    assert {"true at step t", "released at step t"} <= set(labels(axes[0]))
    nothing_is_cut_off(axes[0].figure)


@large
def test_a_step_with_too_many_edges_says_so():
    """An error after half of the picture was drawn would be no help."""
    big = pf.Grid(120, 120)
    axes = plot.trace(
        big, [0], [1], domains={0: pf.Domain.full(big)}, policies={0: pf.neighbours8(big)}
    )
    assert (
        axes[1].get_title() == "t = 0: 14,400 locations possible\n(56,882 edges: too many to draw)"
    )
    assert not axes[1].collections
    assert "edge outside cliques" not in labels(axes[0])


def test_domains_of_points_and_given_axes():
    given = plot.pyplot().subplots(1, 3)[1]
    chosen = {1: pf.Domain(POINTS, [4, 5, 6]), 0: pf.Domain(POINTS, [1, 2])}
    axes = plot.trace(POINTS, [0, 1], [1, 2], domains=chosen, ax=given)
    assert all(a is b for a, b in zip(axes, given))
    assert [a.get_title()[:5] for a in axes[1:]] == ["t = 0", "t = 1"]
    assert np.allclose(axes[2].collections[0].get_offsets(), xy_of(POINTS, [4, 5, 6]))


def test_trace_refuses():
    D = pf.Domain(SQUARE, [0])
    cases = [
        (dict(true=[0, 1], released=[0]), pf.InvalidTransition, "true has 2 steps, released 1"),
        (
            dict(true=[[0]], released=[0]),
            pf.InvalidTransition,
            r"true must be one user's trace, shape \(T,\)",
        ),
        (dict(true=[36], released=[0]), pf.InvalidTransition, r"true\[0\] = 36: cells are 0..35"),
        (dict(true=[-1], released=[-1]), pf.InvalidTransition, "both traces are empty"),
        (
            dict(true=[0], released=[0], surrogate=[1]),
            pf.InvalidParameter,
            ("surrogate must be 1 booleans"),
        ),
        (
            dict(true=[0], released=[0], domains={1: D}),
            pf.InvalidParameter,
            ("a step of domains must be an integer in 0..0"),
        ),
        (
            dict(true=[0], released=[0], domains={0: pf.Domain(FLAT, [0])}),
            pf.InvalidDomain,
            ("not a Domain over"),
        ),
        (
            dict(true=[0], released=[0], policies={0: pf.blocks(SQUARE, 3)}),
            pf.InvalidParameter,
            r"policies\[0\] is of a step",
        ),
        (
            dict(true=[0] * 20, released=[0] * 20, domains=dict.fromkeys(range(20), D)),
            pf.InvalidParameter,
            "20 steps would be",
        ),
    ]
    for arguments, error, match in cases:
        with pytest.raises(error, match=match):
            plot.trace(SQUARE, **arguments)
    with pytest.raises(pf.InvalidParameter, match="ax has 1 axes: give 2"):
        plot.trace(SQUARE, [0], [0], domains={0: D}, ax=plot.pyplot().subplots()[1])


# -- curves


def test_error_curves_have_units_and_a_line_for_each(ax):
    errors = {
        ("G_k9", "P-LM"): (2.0, 1.0),
        ("G_k9", "P-PIM"): (1.5, 0.9),
        ("G_k25", "P-PIM"): (3.0, 2.0),
    }
    assert plot.error_curves((0.5, 1.0), errors, ax=ax) is ax
    assert ax.get_ylabel() == "mean error (km)"
    assert ax.get_xscale() == "log"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1"]
    assert labels(ax) == ["G_k9, P-LM", "G_k9, P-PIM", "G_k25, P-PIM"]
    a, b, c = ax.lines
    assert a.get_color() == b.get_color() != c.get_color()  # a policy has a colour
    assert b.get_linestyle() == c.get_linestyle() != a.get_linestyle()  # a mechanism has dashes
    d, e, f = plot.error_curves((0.5, 1.0), errors, colour="mechanism").lines
    assert e.get_color() == f.get_color() != d.get_color()
    assert (
        plot.adversary_curves((0.5, 1.0), errors, unit="m").get_ylabel()
        == "adversary's expected error (m)"
    )


def test_looks_of_many_mechanisms_are_all_different():
    """From the eighth on colours come again: dashes or markers must differ."""
    many = looks([f"m{i}" for i in range(40)])
    assert len({(v["color"], str(v["ls"]), v["marker"]) for v in many.values()}) == 40
    pairs = looks([(f"G{i}", f"m{j}") for i in range(7) for j in range(8)])
    assert len({(v["color"], str(v["ls"])) for v in pairs.values()}) == 56


def test_bands_are_student_intervals_of_the_repeats(ax):
    """Against scipy's: a normal quantile, ddof 0, or rows taken for columns would fail.

    NaN is missing, not zero.
    """
    values = np.random.default_rng(1).gamma(2.0, size=(12, 4))
    values[3, 1] = values[5, 1] = np.nan
    values[1:, 3] = np.nan  # one number has no interval
    plot.over_time({"P-PIM": values}, confidence=0.9, ax=ax)
    assert ax.get_ylabel() == "mean error (km)"
    assert ax.get_xlabel() == "timestamp"
    assert np.allclose(ax.lines[0].get_ydata(), np.nanmean(values, axis=0))
    corners = ax.collections[0].get_paths()[0].vertices
    for t in range(3):
        column = values[:, t][~np.isnan(values[:, t])]
        expected = stats.t.interval(0.9, len(column) - 1, column.mean(), stats.sem(column))
        drawn = corners[np.isclose(corners[:, 0], t), 1]
        assert [drawn.min(), drawn.max()] == pytest.approx(expected)
    assert not np.isclose(corners[:, 0], 3).any()


def test_given_bands_are_drawn_as_they_are(ax):
    plot.lines(
        [0, 1],
        {"a": [1, 2], "b": [3, 4]},
        bands={"a": [0.5, 0.25], "b": ([2, 3], [5, 6])},
        ylabel="km",
        ax=ax,
    )
    a, b = (set(map(tuple, c.get_paths()[0].vertices.round(9))) for c in ax.collections)
    assert a == {(0, 0.5), (0, 1.5), (1, 1.75), (1, 2.25)}
    assert b == {(0, 2), (0, 5), (1, 3), (1, 6)}


def test_legends_stand_beside_the_data_and_inside_where_there_is_no_room(ax):
    """A legend over the curves, or one cut off at the figure's edge, would fail."""
    plot.over_time({"a": [1, 2], "b": [2, 3]}, ax=ax)
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1
    plain = plot.pyplot().subplots()[1]
    plot.over_time({"a": [1, 2], "b": [2, 3]}, ax=plain)
    plain.figure.canvas.draw()
    assert plain.get_legend().get_window_extent().x1 <= plain.get_window_extent().x1
    on_map = plot.noise(pf.PPIM(pf.blocks(SQUARE, 3), epsilon=1.0), 7)
    on_map.figure.canvas.draw()
    legend = on_map.get_legend().get_window_extent()
    assert legend.y1 <= on_map.xaxis.get_label().get_window_extent().y0
    assert legend.y0 >= 0


def test_times_may_be_dates(ax):
    times = np.datetime64("2024-03-01") + np.arange(4) * np.timedelta64(6, "h")
    plot.over_time({"P-LM": np.arange(4.0)}, times=times, xlabel="time", ax=ax)
    ax.figure.canvas.draw()
    assert "Mar" in " ".join(t.get_text() for t in ax.get_xticklabels())
    assert ax.get_legend() is None  # one line needs none


def test_ticks_of_many_epsilons_do_not_touch(ax):
    eps = np.geomspace(0.1, 10, 60)
    plot.error_curves(eps, {"P-PIM": 1 / eps}, ax=ax)
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.get_xticklabels()]
    assert 5 <= len(boxes) <= 11
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_privacy_against_utility(ax):
    """x and y swapped, or epsilon at the wrong points, would fail."""
    utility, privacy = (
        {"P-LM": [3.0, 1.0], "P-PIM": [2.0, 0.5]},
        {"P-LM": [2.5, 0.8], "P-PIM": [2.2, 0.4]},
    )
    assert plot.privacy_utility((0.5, 2.0), utility, privacy, ax=ax) is ax
    for container, name in zip(ax.containers, utility):
        assert (container.lines[0].get_xdata() == utility[name]).all()
        assert (container.lines[0].get_ydata() == privacy[name]).all()
    at = {(t.get_text(), t.xy) for t in ax.texts}
    assert at == {("0.5", (3.0, 2.5)), ("2", (1.0, 0.8)), ("0.5", (2.0, 2.2)), ("2", (0.5, 0.4))}
    assert "(km)" in ax.get_xlabel() and "adversary's expected error (km)" in ax.get_ylabel()
    assert set(labels(ax)) == {"P-LM", "P-PIM", "equal errors"}
    many = {f"m{i}": [2.0 + i, 1.0] for i in range(5)}
    assert len(plot.privacy_utility((0.5, 2.0), many, many).texts) == 2  # the first curve's
    repeats = {"a": np.random.default_rng(0).random((9, 2))}
    assert plot.privacy_utility((0.5, 2.0), repeats, repeats).containers[0].has_xerr


def test_bars_stand_in_groups(ax):
    values = {"P-LM": [1.0, 2.0, 3.0], "P-PIM": np.random.default_rng(0).gamma(3.0, size=(8, 3))}
    assert plot.bars(["G_k9", "G_k16", "G_k25"], values, ax=ax) is ax
    heights = [
        [bar.get_height() for bar in group] for group in ax.containers if hasattr(group, "patches")
    ]
    assert np.allclose(heights, [values["P-LM"], values["P-PIM"].mean(axis=0)])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["G_k9", "G_k16", "G_k25"]
    assert ax.get_ylabel() == "mean error (km)"
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches)
    assert all(a[1] <= b[0] for a, b in pairwise(edges))  # no bar covers another
    assert (
        sum(len(c.get_segments()) for c in ax.collections) == 3
    )  # whiskers where there are repeats


def test_curves_refuse():
    cases = [
        (
            lambda: plot.error_curves((0.5, 1), {"a": [1, 2, 3]}),
            r"series\['a'\] has shape \(3,\): give 2 numbers",
        ),
        (lambda: plot.error_curves((1, 0.5), {"a": [1, 2]}), "epsilons must ascend"),
        (
            lambda: plot.error_curves((0, 1), {"a": [1, 2]}),
            "epsilon must be a finite number above 0",
        ),
        (lambda: plot.error_curves((0.5, 1), {}), "series is empty"),
        (
            lambda: plot.error_curves((0.5, 1), {"a": [1, 2]}, colour="red"),
            "colour must be one of 'policy', 'mechanism'",
        ),
        (lambda: plot.over_time({}), "series is empty"),
        (lambda: plot.lines([], {"a": []}), "x must be a list"),
        (lambda: plot.lines([0], {"a": ["b"]}), "must be numbers"),
        (
            lambda: plot.lines([0], {"a": [1]}, bands={"b": [1]}),
            r"bands\['b'\] belongs to no series",
        ),
        (
            lambda: plot.lines([0, 1], {"a": [1, 2]}, bands={"a": [1, 2, 3]}),
            "give 2 half-widths, or",
        ),
        (lambda: plot.lines([0, 1], {"a": [1, 2]}, bands={"a": [-1, 2]}), "upside down at 0"),
        (
            lambda: plot.lines([0], {"a": [1]}, confidence=1.0),
            "confidence must be above 0 and below 1",
        ),
        (lambda: plot.bars(["x"], {"a": [1, 2]}), "give 1 numbers"),
        (
            lambda: plot.privacy_utility([1], {"a": [1]}, {"b": [1]}),
            "must have the same keys, 'a' is in one",
        ),
    ]
    for call, match in cases:
        with pytest.raises(pf.InvalidParameter, match=match):
            call()


# -- exposure


def test_exposure_names_what_it_draws(ax):
    G, C = pf.blocks(SQUARE, 3), pf.Domain(SQUARE, [0, 1, 8, 20, 35])
    assert plot.exposure(G, C, ax=ax) is ax
    assert {"edge lost", "edge of $G^C$", "edge added", "excluded", "in the domain"} <= set(
        labels(ax)
    )
    assert plot.exposure(G, C, calibration="component").get_xlabel() == "east (km)"
    with pytest.raises(pf.TooLarge, match="edges would be a blot"):
        plot.exposure(pf.complete(pf.Grid(20, 20)), pf.Domain(pf.Grid(20, 20), [0]))


def test_exposure_of_points_is_in_their_frame(ax):
    """Drawn from the lattice's origin, points would not meet what a user draws at points.xy."""
    plot.exposure(pf.complete(POINTS, [3, 5, 9]), pf.Domain(POINTS, [3, 5, 9]), ax=ax)
    [dots] = [c for c in ax.collections if c.get_label() == "in the domain"]
    assert np.allclose(dots.get_offsets(), xy_of(POINTS, [3, 5, 9]))
    assert to_rgba(plot.COLOURS[0]) == tuple(dots.get_facecolors()[0])


# -- the gallery


@large
def test_the_gallery_is_drawn_by_its_script(tmp_path):
    """Every picture on the page is made by the script, small enough, and nothing else is."""
    subprocess.run(
        [sys.executable, str(ROOT / "docs" / "plot_gallery.py"), str(tmp_path)],
        check=True,
        cwd=ROOT,
    )
    page = (ROOT / "docs" / "plots.md").read_text()
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made
    for name in made:
        assert f"(images/{name})" in page, name
        assert (ROOT / "docs" / "images" / name).stat().st_size < 150_000
        assert (tmp_path / name).stat().st_size < 150_000
    assert synthetic.synthetic_city().grid.size == 3600


BEIJING = pf.Grid.from_bounds(lat=(39.83, 39.99), lon=(116.27, 116.47), cell_km=0.34)


def test_axes_are_degrees_where_the_map_has_them():
    """Would catch ticks that are off by half a cell, or a bar of another length than it says."""
    ax = plot.heat(BEIJING, np.zeros(BEIJING.size))
    ax.figure.canvas.draw()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("longitude", "latitude")
    for axis, part, k in ((ax.xaxis, "E", 1), (ax.yaxis, "N", 0)):
        assert len(axis.get_majorticklocs()) >= 2
        for at, text in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True):
            degrees, side = text.get_text().split("° ")
            # xy counts from the middle of the first cell, the corner lies half a cell before
            origin, scale = BEIJING.latlon(0)[k], BEIJING.scale[1 - k]
            step = BEIJING.latlon(1 if k else BEIJING.cols)[k] - origin
            assert side == part and float(degrees) == pytest.approx(origin + at / scale * step)
    bars = [one for one in ax.lines if len(one.get_xdata()) == 2]
    said = [t.get_text() for t in ax.texts if t.get_text().endswith("km")]
    assert said and said[-1] == f"{np.ptp(bars[-1].get_xdata()):g} km"
    assert len(bars) == 1, "one bar, however often the map is zoomed"
    assert is_a_map(plot.heat(pf.Grid(4, 4, cell_km=1.0), np.arange(16)))


def test_southern_and_western_degrees():
    cape = pf.Grid.from_bounds(lat=(-34.1, -33.9), lon=(-18.6, -18.4), cell_km=0.5)
    ax = plot.map_axes(cape)
    ax.figure.canvas.draw()
    assert all(t.get_text().endswith("° W") for t in ax.get_xticklabels())
    assert all(t.get_text().endswith("° S") for t in ax.get_yticklabels())


def test_skewed_values_are_on_a_logarithmic_scale():
    """Would catch a map that is black but for a few cells, and zeros that look like a count."""
    from matplotlib.colors import LogNorm

    counts = np.zeros(BEIJING.size)
    counts[:50], counts[7] = 3, 5_000
    shown = plot.heat(BEIJING, counts, label="rows").images[0]
    assert isinstance(shown.norm, LogNorm)
    assert np.ma.getmaskarray(shown.get_array()).sum() == BEIJING.size - 50
    linear = plot.heat(BEIJING, counts, log=False).images[0]
    assert not isinstance(linear.norm, LogNorm)
    even = plot.heat(BEIJING, np.arange(BEIJING.size)).images[0]
    assert not isinstance(even.norm, LogNorm)
    with pytest.raises(pf.InvalidParameter, match="logarithmic scale"):
        plot.heat(BEIJING, -counts, log=True)


def test_a_long_trace_is_not_linked_step_by_step_and_gaps_are_left_open():
    cells = np.arange(400) % BEIJING.size
    gaps = np.zeros(400, bool)
    gaps[200] = True
    ax = plot.trace(BEIJING, cells, cells, gaps=gaps)
    assert not [c for c in ax.collections if c.get_label() == "same step"]
    path = line(ax, "true")
    assert len(path) == 401 and np.isnan(path[200]).all() and np.isnan(path).sum() == 2
    few = plot.trace(BEIJING, cells[:9], cells[:9], gaps=np.arange(9) == 4)
    for name in ("true", "released"):
        assert np.isnan(line(few, name)[4]).all()
    with pytest.raises(pf.InvalidParameter, match="gaps must be 9 booleans"):
        plot.trace(BEIJING, cells[:9], cells[:9], gaps=[True])


def test_a_release_of_the_true_place_hides_neither():
    """Crosses lay under the dots of true places: who stayed put seemed to have released nothing."""
    ax = plot.trace(BEIJING, [0, 1, 2], [0, 1, 5])
    true, released = (next(x for x in ax.lines if x.get_label() == n) for n in ("true", "released"))
    assert released.get_zorder() > true.get_zorder()
    assert released.get_markersize() < true.get_markersize() - 2
    assert true.get_markerfacecolor() == "white"


def test_maps_that_are_compared_have_one_scale_of_colours():
    """Two maps side by side, each on a scale of its own, show a count of 5 in two colours."""
    one, other = (
        plot.heat(BEIJING, np.full(BEIJING.size, v), limits=(1, 100), log=log).images[0]
        for v, log in ((5.0, False), (50.0, False))
    )
    assert one.get_clim() == other.get_clim() == (1, 100)
    assert plot.heat(SQUARE, np.arange(36.0), limits=(2, 9), log=True).images[0].get_clim() == (
        2,
        9,
    )
    for bad in ((3, 3), (5, 1), (0, np.inf)):
        with pytest.raises(pf.InvalidParameter, match="limits must be two ascending numbers"):
            plot.heat(SQUARE, np.arange(36.0), limits=bad)
    with pytest.raises(pf.InvalidParameter, match="above 0 on a logarithmic scale"):
        plot.heat(SQUARE, np.arange(36.0), limits=(0, 5), log=True)


def test_edges_that_nobody_can_tell_apart_are_left_out_and_said():
    ax = plot.policy(pf.neighbours8(BEIJING))
    assert any("too many to draw" in text for text in labels(ax))


def test_numbers_stand_out_from_the_outline_of_k():
    m = pf.PPIM(pf.blocks(pf.Grid(5, 5, cell_km=1.0), 5), epsilon=1.0)
    ax = plot.noise(m, 12)
    numbers = [t for t in ax.texts if t.get_text().startswith(".")]
    assert numbers and all(t.get_path_effects() for t in numbers)
    outline = next(one for one in ax.lines if one.get_label() == "noise polygon K")
    assert all(t.get_zorder() > outline.get_zorder() for t in numbers)
