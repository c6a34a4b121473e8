"""Regions as policies: districts from GeoJSON, Shapely and GeoPandas."""

import json

import numpy as np
import pytest

import naive
import pglp_fast as pf

GRID = pf.Grid(20, 24, cell_km=0.5, origin=(35.6, 139.6))
HALF = [139.6, 139.66, 139.8]


def square(west, south, east, north):
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def collection(*geometries, names=None):
    names = names or range(len(geometries))
    features = [
        {"type": "Feature", "geometry": g, "properties": {"ward": n}}
        for g, n in zip(geometries, names)
    ]
    return {"type": "FeatureCollection", "features": features}


def inside(grid, rings):
    """The cells whose middle is in the rings, by an exact test in degrees."""
    return [s for s, (lat, lon) in enumerate(grid.latlon(range(grid.size)))
            if naive.in_polygon(rings, lon, lat)]  # fmt: skip


WEST, EAST = square(139.5, 35.5, 139.66, 35.8), square(139.66, 35.5, 139.9, 35.8)


def test_two_districts_with_a_common_border_are_two_cliques():
    G = pf.regions(GRID, collection(polygon(WEST), polygon(EAST)))
    west = inside(GRID, [WEST])
    assert 0 < len(west) < GRID.size
    wanted = pf.complete(GRID, west) | pf.complete(GRID, np.setdiff1d(np.arange(GRID.size), west))
    assert wanted == G
    assert len(G.extra_indices) == 0  # kept as cliques
    assert (G.degrees() > 0).all()  # no cell of the border is lost


@pytest.mark.parametrize("seed", range(5))
def test_any_polygon_against_fractions(seed):
    rng = np.random.default_rng(seed)
    ring = (np.array([139.6, 35.6]) + rng.random((7, 2)) * [0.13, 0.09]).tolist()
    hole = (np.array([139.62, 35.61]) + rng.random((4, 2)) * [0.05, 0.05]).tolist()
    G = pf.regions(GRID, polygon(ring, hole))
    assert np.flatnonzero(G.degrees() > 0).tolist() == inside(GRID, [ring, hole])


def test_parts_and_features_of_one_name_are_one_region():
    a, b = square(139.6, 35.6, 139.61, 35.61), square(139.65, 35.65, 139.67, 35.67)
    parts = {"type": "MultiPolygon", "coordinates": [[a], [b]]}
    one = pf.regions(GRID, parts)
    assert one == pf.complete(GRID, inside(GRID, [a]) + inside(GRID, [b]))
    assert one == pf.regions(GRID, collection(polygon(a), polygon(b), names=["x", "x"]), by="ward")
    two = pf.regions(GRID, collection(polygon(a), polygon(b)))
    assert two == pf.complete(GRID, inside(GRID, [a])) | pf.complete(GRID, inside(GRID, [b]))


def test_regions_that_overlap_have_the_edges_of_both():
    a, b = square(139.6, 35.6, 139.65, 35.65), square(139.63, 35.63, 139.7, 35.66)
    G = pf.regions(GRID, [polygon(a), polygon(b)])
    assert pf.complete(GRID, inside(GRID, [a])) | pf.complete(GRID, inside(GRID, [b])) == G


def test_a_file_and_its_content_are_the_same(tmp_path):
    content = collection(polygon(WEST), polygon(EAST))
    (tmp_path / "wards.geojson").write_text(json.dumps(content))
    assert pf.regions(GRID, tmp_path / "wards.geojson") == pf.regions(GRID, content)
    assert pf.regions(GRID, str(tmp_path / "wards.geojson")) == pf.regions(GRID, content)


def test_without_latitude_rings_are_km():
    g = pf.Grid(4, 4)
    G = pf.regions(g, [np.array([(-0.5, -0.5), (1.5, -0.5), (1.5, 1.5), (-0.5, 1.5)])])
    assert pf.complete(g, [0, 1, 4, 5]) == G
    points = pf.Points([(5.0, 5.0), (5.2, 5.1), (9.0, 9.0)])
    P = pf.regions(points, [[(4, 4), (6, 4), (6, 6), (4, 6)]])
    assert pf.complete(points, [0, 1]) == P


def test_points_with_latitude():
    rng = np.random.default_rng(2)
    lat, lon = 35.6 + rng.random(300) * 0.1, 139.6 + rng.random(300) * 0.1
    points = pf.Points.from_latlon(lat, lon)
    ring = square(139.62, 35.61, 139.68, 35.66)
    G = pf.regions(points, polygon(ring))
    assert np.flatnonzero(G.degrees() > 0).tolist() == inside(points, [ring])


def test_shapely_and_geopandas_say_the_same():
    shapely, geopandas = pytest.importorskip("shapely"), pytest.importorskip("geopandas")
    rng = np.random.default_rng(3)
    seeds = np.array([139.55, 35.55]) + rng.random((60, 2)) * [0.25, 0.2]
    wards = list(shapely.voronoi_polygons(shapely.MultiPoint(seeds)).geoms)
    G = pf.regions(GRID, wards)
    lat, lon = GRID.latlon(range(GRID.size)).T
    labels = np.full(GRID.size, -1)
    for k, ward in enumerate(wards):
        labels[shapely.contains_xy(ward, lon, lat)] = k
    assert pf.categories(GRID, labels, None) == G
    frame = geopandas.GeoDataFrame({"half": ["a", "b"] * 30}, geometry=wards, crs=4326)
    assert pf.regions(GRID, frame) == G
    assert pf.regions(GRID, frame.geometry) == G
    assert pf.regions(GRID, frame.to_crs(32654)) == G  # metres of UTM zone 54
    halves = pf.regions(GRID, frame, by="half")
    assert halves == pf.categories(GRID, np.where(labels >= 0, labels % 2, -1), None)


def test_a_certified_release_stays_in_its_district():
    G = pf.regions(GRID, collection(polygon(WEST), polygon(EAST)))
    m = pf.PPIM(G, epsilon=1.0)
    assert pf.certify(m).ok
    cells = np.arange(GRID.size)
    assert (G.components[m.release(cells, rng=1)] == G.components).all()


@pytest.mark.parametrize(
    "polygons, words",
    [
        ([], "polygons is empty"),
        ({"type": "Point", "coordinates": [139.6, 35.6]}, "region 0 is a 'Point'"),
        (polygon([[139.6, 35.6], [139.7, 35.6]]), "three corners"),
        (polygon([[139.6, 35.6], [139.7, float("nan")], [139.7, 35.7]]), "must be finite"),
        (polygon(square(35.5, 139.5, 35.8, 139.9)), "longitude, latitude"),
        ("no/such/file.geojson", "cannot be read as GeoJSON"),
        (7, "must be a list"),
        (polygon([["a", "b"], ["c", "d"], ["e", "f"]]), "real numbers"),
    ],
)
def test_what_is_not_a_region_is_refused(polygons, words):
    with pytest.raises(pf.InvalidPolicy, match=words):
        pf.regions(GRID, polygons)


def test_a_property_that_is_not_there_is_named():
    with pytest.raises(pf.InvalidPolicy, match="region 0 has no property 'name': it has ward"):
        pf.regions(GRID, collection(polygon(WEST)), by="name")


def test_a_million_cells_and_thousands_of_regions_stay_cliques():
    """Rasterised row by row: 2,500 squares over 1,000 x 1,000 cells list no edge."""
    g = pf.Grid(1000, 1000)
    corners = np.arange(0, 1000, 20) - 0.5
    rings = [[(x, y), (x + 20, y), (x + 20, y + 20), (x, y + 20)] for y in corners for x in corners]
    assert pf.regions(g, rings) == pf.blocks(g, 20)
