"""Many polygons of different lengths, laid end to end."""

from collections import namedtuple

from pglp_fast._kernels.base.jit import kernel

# Polygon k has the vertices vertices[starts[k]:starts[k + 1]], counter-clockwise.
Polygons = namedtuple("Polygons", "vertices starts")


@kernel
def polygon_of(polygons, k):
    """Vertices of one of them."""
    return polygons.vertices[polygons.starts[k] : polygons.starts[k + 1]]
