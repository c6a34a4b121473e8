"""Tables, models and plans that tests of releases share."""

import numpy as np

import pglp_fast as pf
from cli_tools import some_rows, the_grid

G = the_grid()


def frame(n=200, seed=0, inside=0.9):
    """Rows of six users as a DataFrame of pandas."""
    import pandas as pd

    user, seconds, lat, lon = some_rows(n, 6, seed, inside=inside)
    return pd.DataFrame(
        {
            "user": [f"u{k}" for k in user],
            "time": pd.to_datetime(seconds, unit="s"),
            "lat": lat,
            "lon": lon,
            "venue_id": np.arange(n),
        },
        index=pd.RangeIndex(100, 100 + n),
    )


def model():
    near = pf.neighbours8(G)
    M = np.eye(G.size)
    M[np.repeat(np.arange(G.size), np.diff(near.indptr)), near.indices] = 1
    made = pf.MobilityModel(G, M / M.sum(axis=1, keepdims=True))
    made.notes = {"step_ms": 300_000}
    return made


def plan(**more):
    return pf.Plan(**{"grid": G, "policy": "blocks:3", "epsilon": 1.0, "seed": 3, **more})
