"""Where: grids, points, projections, and a made-up city."""
