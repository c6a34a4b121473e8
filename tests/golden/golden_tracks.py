"""Cases: tables and data sets read, cleaned and brought to steps."""

import gzip
import tempfile
from pathlib import Path

import numpy as np

import pglp_fast as pf

BOX = {"lat": (35.68, 35.72), "lon": (139.60, 139.65)}
PLT = (
    "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n"
    "0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
    "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r\n"
    "39.984683,116.31845,0,-777,39744.1202546296,2008-10-23,02:53:10\r\n"
)
GOWALLA = (
    "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
    "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315\n"
    "3\t2010-10-17T23:42:03Z\t30.2557309927\t-97.7633857727\t316637\n"
)
FOURSQUARE = (
    "470\t49bbd6c0\t4bf58dd8\tArts & Crafts Store\t40.719810375488535\t-74.00258103213994\t-240\t"
    "Tue Apr 03 18:00:09 +0000 2012\n"
    "979\t4a43c0ae\t4bf58dd9\tCaf\u00e9\t40.606799581406435\t-74.04416981025437\t-240\t"
    "Wed Feb 29 18:00:25 +0000 2012\n"
)
POIS = (
    "poi_id,y,x,category,y_id,x_id,2D_id,count\n"
    "0,35.681,139.601,arts_entertainment/Museum/4,0,0,0,3\n"
    "1,35.69,139.62,food/Ramen / Noodle House/3,0,0,0,2\n"
    "2,35.69,139.62,food/Caf\u00e9/3,0,0,0,1\n"
    "3,35.70,139.63,food/None/,0,0,0,9\n"
    "4,35.71,139.64,home/Home/8,0,0,0,9\n"
)


def fixes(n=240, users=5, seed=0):
    """Lines of a table with all that goes wrong: doubles, gaps, places off the map, old clocks."""
    rng = np.random.default_rng(seed)
    time = 1_760_000_000 + rng.integers(0, 30 * 300, n)
    time[rng.random(n) < 0.2] += 4 * 3600
    time[5:9] = 900_000_000
    lat, lon = rng.uniform(35.675, 35.725, n), rng.uniform(139.60, 139.65, n)
    lines = [
        f"u{u},{t},{a:.6f},{o:.6f}" for u, t, a, o in zip(rng.integers(0, users, n), time, lat, lon)
    ]
    lines[20] = lines[21]
    lines[30] = "u1,1760000100,,139.61"
    lines[31] = "u1,1760000100,95,139.61"
    return lines


def tracks_of(tracks):
    return {
        "repr": repr(tracks),
        "user": tracks.user.values(),
        "codes": tracks.user.codes,
        "time": [str(t) for t in tracks.time[:5]],
        "ms": tracks.ms,
        "lat": tracks.lat,
        "lon": tracks.lon,
        "columns": {k: v.values() for k, v in tracks.columns.items()},
        "report": str(tracks.report),
        "facts": tracks.report.to_dict(),
        "number": None if tracks.number is None else tracks.number,
    }


def traces_of(traces):
    return {
        "repr": repr(traces),
        "cells": traces.cells,
        "starts": traces.starts,
        "users": traces.users,
        "start": [str(t) for t in traces.start],
        "array": traces.to_array(),
        "lengths": traces.lengths,
        "report": str(traces.report),
        "facts": traces.report.to_dict(),
        "periods": list(traces.periods(4, ahead="8h"))[:3],
        "times": traces.times(),
    }


def read():
    out = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def write(path, text, encoding="utf-8"):
            path = folder / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode(encoding))
            return path

        body = "\n".join(fixes()) + "\n"
        table = write("t.csv", "user,time,lat,lon\n" + body)
        out["table"] = tracks_of(pf.read_table(table))
        (folder / "t.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
        out["gzip"] = tracks_of(pf.read_table(folder / "t.csv.gz"))
        plain = write("plain.txt", body.replace(",", ";"))
        out["names"] = tracks_of(
            pf.read_table(plain, names=["user", "time", "lat", "lon"], delimiter=";")
        )
        broken = write(
            "b.csv", "uid,datetime,lat,lng\na,2020-01-02 03:04:05,35.5,139.2\na,x,35,139\nb\n"
        )
        out["skip"] = tracks_of(pf.read_table(broken, on_error="skip"))
        zone = write("z.csv", "uid,datetime,lat,lng\na,2020-01-02 03:04:05,35.5,139.2\n")
        out["zone"] = tracks_of(pf.read_table(zone, timezone="Asia/Tokyo"))
        frame = pf.read_table(table).to_pandas()
        out["pandas"] = tracks_of(pf.read_table(frame))
        frame.to_parquet(folder / "t.parquet")
        out["parquet"] = tracks_of(pf.read_table(folder / "t.parquet"))
        out["batches"] = [tracks_of(b) for b in pf.iter_table(table, batch_rows=100)]
        write("geo/Data/001/Trajectory/20081024000000.plt", PLT.replace("10-23", "10-24"))
        write("geo/Data/000/Trajectory/20081023025304.plt", PLT)
        out["geolife"] = tracks_of(pf.read_geolife(folder / "geo"))
        out["gowalla"] = tracks_of(pf.read_gowalla(write("loc-gowalla_totalCheckins.txt", GOWALLA)))
        path = write("dataset_TSMC2014_NYC.txt", FOURSQUARE, "latin-1")
        out["foursquare"] = tracks_of(pf.read_foursquare(path))
        pois = pf.read_peopleflow_pois(write("POI_TK.csv", POIS))
    g = pf.Grid.from_bounds(**BOX, cell_km=0.4)
    places, location = pois.points()
    out["pois"] = {
        "category": pois.category.values(),
        "sub": pois.subcategory.values(),
        "id": pois.category_id,
        "visits": pois.visits,
        "cells": pois.cell_categories(g),
        "places": np.asarray(places.xy),
        "by places": pois.cell_categories(g, weight="places"),
        "location": location,
        "repr": repr(pois),
    }
    return out


def steps():
    g = pf.Grid.from_bounds(**BOX, cell_km=0.4)
    rows = [line.split(",") for line in fixes() if ",," not in line]
    time = np.array([int(r[1]) for r in rows]).astype("datetime64[s]")
    lat, lon = (np.array([float(r[k]) for r in rows]) for k in (2, 3))
    trip = [f"trip {k // 40}" for k in range(len(rows))]
    tracks = pf.Tracks.of([r[0] for r in rows], time, lat, lon, trajectory=trip)
    out = {"sorted": tracks_of(tracks.sorted())}
    cleaned = {
        "plain": tracks.clean(),
        "grid": tracks.clean(g),
        "last": tracks.clean(g, duplicates="last"),
        "all": tracks.clean(g, duplicates="all", window=("2025-10-09", "2026-01-01")),
        "speed": tracks.clean(g, max_speed_kmh=30),
    }
    out |= {f"clean {name}": tracks_of(c) for name, c in cleaned.items()}
    ways = {
        "5min": {},
        "gap": {"max_gap": "1h"},
        "first": {"rule": "first", "max_gap": "1h"},
        "nearest": {"rule": "nearest", "min_steps": 3, "max_gap": "30min"},
        "carry": {"carry": "15min", "max_gap": "2h"},
        "trips": {"split_trajectories": True},
        "origin": {"origin": "2025-10-09T00:01:00", "max_gap": "1h"},
    }
    for name, how in ways.items():
        made = cleaned["plain"].resample(g, "5min", **how)
        out[f"resample {name}"] = traces_of(made)
    made = cleaned["grid"].resample(g, "10min", max_gap="1h")
    out["cut"] = traces_of(made.cut(4, observed=0.3))
    out["at least"] = traces_of(made.at_least(3))
    out["back"] = tracks_of(made.to_tracks())
    out["fit"] = pf.MobilityModel.fit(g, made).stationary()
    p = pf.Points.from_latlon([35.69, 35.70, 35.71], [139.61, 139.62, 139.63])
    out["points"] = traces_of(cleaned["plain"].resample(p, "5min", max_gap="1h"))
    return out


GROUPS = {"read": read, "steps": steps}
