"""Tables in memory: pandas, polars, Arrow or GeoDataFrame in, the same kind out."""

import secrets
from typing import Any

import numpy as np

from pglp_fast._util.packages import Later, need
from pglp_fast.errors import InvalidTable
from pglp_fast.io.arrow import frame_batches
from pglp_fast.io.columns import match
from pglp_fast.io.table_batches import refuse_text_options

from .booking import Booking
from .places_and_choices import check_places
from .plan import Plan
from .released import MALFORMED, Added, Outcome
from .single_releases import Alone, book_all
from .sink import Layout, Shape, released_schema, shape_of
from .source import BATCH_ROWS, Batch, batch_of, reading_of
from .trace_releases import release_moving

pa = Later("pyarrow")


def release_table(frame: Any, plan: Plan) -> Any:
    """Release a table in memory by a plan.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, GeoDataFrame, Arrow table or record batch
        One row a fix. Named levels of a pandas index count as columns; any other index, but for
        plain numbers from 0 on, is left out unless the plan keeps everything.
    plan : Plan

    Returns
    -------
    The same kind of table, the same rows in the same order: the columns that the plan keeps, then
    released_lat, released_lon, released_cell and released_status (and released_exposed, with a
    mobility model; and released_surrogate where the true places are kept).

    Notes
    -----
    Unless the plan has a seed, each call draws with a fresh key, which nobody ever sees: releasing
    a table twice spends epsilon twice.
    """
    refuse_text_options(f"this is a {type(frame).__name__}", plan.names, plan.delimiter)
    pandas = hasattr(frame, "iloc")
    if pandas and not hasattr(frame, "columns"):
        raise InvalidTable(f"a table has columns, and this is a {type(frame).__name__}")
    if pandas and any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    plan.check()
    reading, source = reading_of(plan), type(frame).__name__
    raws = frame_batches(frame, plan.columns, BATCH_ROWS)
    batches = _with_choices([batch_of(raw, source, reading) for raw in raws], frame, plan)
    arrow = isinstance(frame, pa.Table | pa.RecordBatch)
    table = frame if pandas or arrow else pa.table(frame)
    shape = _pandas_shape(table, plan) if pandas else shape_of(table.schema, plan, source)
    layout = Layout(shape, plan, source)
    added = _release(batches, plan)
    if pandas:
        return _pandas(table, layout, added)
    schema = released_schema(table.schema, layout, {**plan.facts, "plan": plan.digest})
    new = [*layout.old(table, added.status), *layout.added(added)]
    out = type(table).from_arrays(new, schema=schema)
    polars = source == "DataFrame" and not arrow
    return need("polars").from_arrow(out) if polars else out


def _with_choices(batches: list[Batch], frame: Any, plan: Plan) -> list[Batch]:
    """Batches with the columns of policies and epsilons, if there are."""
    wanted = [name for name in (plan.policy_column, plan.epsilon_column) if name is not None]
    if not wanted:
        return batches
    if hasattr(frame, "iloc"):
        there = [str(name) for name in frame.columns]
        columns = {n: pa.array(frame.iloc[:, there.index(n)]) for n in wanted if n in there}
        whole = pa.table(columns)
    else:
        table = frame if isinstance(frame, pa.Table | pa.RecordBatch) else pa.table(frame)
        whole = table.select([name for name in wanted if name in table.schema.names])
    return [batch._replace(raw=whole.slice(batch.first, batch.rows)) for batch in batches]


def _pandas(frame: Any, layout: Layout, added: Added) -> Any:
    old, bad = frame.iloc[:, layout.kept], added.status == MALFORMED
    if bad.any() and not layout.all:
        old = old.mask(np.repeat(bad[:, None], old.shape[1], axis=1))
        for name in old.select_dtypes("category"):  # which would still list what was there
            old[name] = old[name].cat.remove_unused_categories()
    if not layout.all and not isinstance(old.index, need("pandas").RangeIndex):
        old = old.reset_index(drop=True)  # it may hold a place
    new = pa.table(dict(zip(layout.names, layout.added(added), strict=True)))
    released = new.to_pandas().set_index(old.index)
    whole = need("pandas").concat([old, released], axis=1)
    if not layout.points:
        return whole
    geopandas, name = need("geopandas", "geo"), layout.names[-1]
    whole[name] = geopandas.GeoSeries.from_wkb(released[name], crs=4326)
    return geopandas.GeoDataFrame(whole, geometry=name)


def _pandas_shape(frame: Any, plan: Plan) -> Shape:
    """Its places are points where they are a GeoSeries."""
    columns = [str(name) for name in frame.columns]
    at = match(columns, plan.columns, type(frame).__name__, geometry=True)
    return Shape(columns, at, "geometry" in at and hasattr(frame.iloc[:, at["geometry"]], "x"))


def _release(batches: list[Batch], plan: Plan) -> Added:
    """What is added to all rows."""
    seed = secrets.randbits(256) if plan.seed is None else plan.seed
    if plan.model is not None:
        return release_moving(batches, plan, seed)
    outcome = Outcome()
    release = Alone(plan, seed, outcome, book_all(plan, batches, Booking(plan)))
    parts = [Added.of_status(np.empty(0, np.uint8), plan), *map(release, batches)]
    added = Added.joined(parts)
    outcome.add(added)
    check_places(outcome, plan)
    return added
