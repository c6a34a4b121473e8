"""Options that several subcommands share, and how their values are read."""

import argparse
import textwrap
from typing import Any

from pglp_fast.mechanisms.registry import MECHANISMS

Commands = Any  # argparse keeps the type of its subparsers to itself
Adder = Any  # a parser or a group of options

STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")
ROLES = ("user", "time", "lat", "lon")
POLICY_HELP = """\
policies (--policy): an edge says that nobody may tell its two ends apart
  blocks:K              cells of each K x K block, all joined (blocks:3 is G_k9)
  neighbours8           each cell with the eight around it (implies Geo-Indistinguishability)
  complete              all cells of the map (implies location set privacy)
  categories:K          cells of the same category within each K x K block, from --labels FILE: a
                        table of lat,lon,category or of cell,category, or the People Flow places
                        (POI_TK.csv)
  hide:K                each cell that --labels FILE names, with its K nearest others
  regions:FILE          the cells of each polygon of a GeoJSON file, all joined
  saved:FILE            what PolicyGraph.save wrote, on the same map
  edges:FILE            any graph: two columns of cells (.csv, .txt), a (m, 2) array (.npy) or a
                        sparse matrix (.npz)"""


def command(
    commands: Commands, name: str, summary: str, text: str, examples: str
) -> argparse.ArgumentParser:
    """A subcommand with its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.dedent(text).strip(),
        epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="options from a TOML file; relative paths are from here, not from the file",
    )
    return parser


def add_json(parser: Adder) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document on standard output, nothing else",
    )


def add_progress(parser: Adder) -> None:
    parser.add_argument(
        "--progress",
        action="store_true",
        help="show how far it is on standard error, also where that is no terminal",
    )


def add_table(parser: Adder) -> None:
    """How a table is read."""
    group = parser.add_argument_group("reading the table")
    group.add_argument(
        "--columns",
        type=columns,
        metavar="ROLE=NAME,...",
        help="which column is which, of user, time, lat, lon; those not given are found by their "
        "usual names. Two columns for the time in a text file: time=date+clock",
    )
    group.add_argument(
        "--names",
        type=names,
        metavar="NAME,...",
        help="names of the columns of a text file without a header line",
    )
    group.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="of a text file (default: found; 'tab' for a tab)",
    )
    group.add_argument(
        "--timezone",
        default="UTC",
        metavar="ZONE",
        help="of times that do not say theirs, e.g. Asia/Tokyo (default: UTC)",
    )
    group.add_argument(
        "--time-format",
        metavar="FORMAT",
        help="how times are written, as strptime has it, e.g. '%%d.%%m.%%Y %%H:%%M'",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="what numbers in text have for a point (default: .)",
    )


def add_map(parser: Adder, *, from_table: bool = False, from_model: bool = False) -> None:
    """Where the map lies.

    Without --bounds it may come from the table or from the model, where the subcommand has one.
    """
    group = parser.add_argument_group("map")
    model = "; the model's, with --mobility" if from_model else ""
    group.add_argument(
        "--cell-km", type=cell_km, metavar="KM", help=f"side of a cell in km, or DX,DY{model}"
    )
    default = " (default: the box of the table, outward to 0.01 degrees)" if from_table else ""
    group.add_argument(
        "--bounds",
        type=bounds,
        metavar="LAT0,LAT1,LON0,LON1",
        help=f"the map's box in degrees{default}{model}",
    )


def add_mechanism(parser: Adder, *, optional: bool = False) -> None:
    """What is promised, and how it is kept."""
    group = parser.add_argument_group("promise and mechanism")
    group.add_argument(
        "--epsilon",
        type=positive,
        required=not optional,
        metavar="E",
        help="e^E bounds the ratio of probabilities across an edge of the policy, for each release",
    )
    group.add_argument(
        "--policy",
        required=not optional,
        metavar="POLICY",
        help="what to protect: see 'policies' above",
    )
    group.add_argument(
        "--labels",
        metavar="FILE",
        help="categories of places or cells, for --policy categories:K and hide:K",
    )
    group.add_argument(
        "--mechanism", type=mechanism, default="ppim", metavar=f"{{{','.join(MECHANISMS)}}}",
        help="how noise is drawn (default: ppim)",
    )  # fmt: skip
    group.add_argument(
        "--calibration",
        choices=("component", "graph"),
        default="component",
        help="which edges shape the noise: those of the true cell's component, or all (default: "
        "component)",
    )
    group.add_argument(
        "--remap",
        choices=("euclidean", "squared"),
        default=None,
        help="post-process what is drawn to the cell of least expected loss: same promise, less "
        "error",
    )


def add_mobility(parser: Adder, *, required: bool = False) -> None:
    """The adversary who knows how people move."""
    group = parser.add_argument_group("users who move")
    group.add_argument(
        "--mobility",
        required=required,
        metavar="MODEL",
        help="what the adversary knows of movement, from 'fit'",
    )
    group.add_argument(
        "--delta",
        type=share,
        metavar="D",
        help="the domain is the smallest set of mass 1 - D (default: 0, all)",
    )
    group.add_argument(
        "--repair",
        choices=STRATEGIES,
        help="which edges protect isolated cells (default: min-area)",
    )
    group.add_argument(
        "--likelihood",
        choices=("exact", "density"),
        help="of the adversary's belief: exact, or faster (default: exact)",
    )
    group.add_argument(
        "--step", type=duration, metavar="TIME", help="duration of a step (default: the model's)"
    )


def add_prefix(parser: Adder, what: str = "released") -> None:
    parser.add_argument(
        "--prefix",
        default="released_",
        metavar="TEXT",
        help=f"how {what} columns start (default: released_)",
    )


def add_traces(parser: Adder, what: str) -> None:
    parser.add_argument("--traces", type=count_from(1), default=500, metavar="N", help=what)


def add_output(parser: Adder, what: str) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=what)
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")


# -- values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a finite number above 0, got {text}")
    return value


def share(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return value


def count_from(low: int) -> Any:
    def count(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {text}")
        return value

    return count


def duration(text: str) -> int:
    """Milliseconds."""
    from pglp_fast._util import times
    from pglp_fast.errors import InvalidParameter

    try:
        return times.duration(text, "")
    except InvalidParameter:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration: write 30s, 5min, 1h or 1d"
        ) from None


def mechanism(text: str) -> str:
    """A name of the registry, or module:Class."""
    if text not in MECHANISMS and ":" not in text:
        names = ", ".join(map(repr, MECHANISMS))
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {names})")
    return text


def mechanisms(text: str) -> list[str]:
    """Several of them, different ones."""
    found = [mechanism(name) for name in names(text)]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text} names a mechanism twice")
    return found


def epsilons(text: str) -> list[float]:
    """Ascending epsilons."""
    found = [positive(part) for part in text.split(",")]
    if sorted(set(found)) != found:
        raise argparse.ArgumentTypeError(f"{text} must ascend")
    return found


def utc_offset(text: str) -> int:
    """Milliseconds that local time is ahead of UTC; below 0 behind."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    ms = 0 if digits in ("0", "0h") else duration(digits)
    if ms > 14 * 3_600_000:
        raise argparse.ArgumentTypeError(f"{text} is no offset from UTC: at most 14h")
    return sign * ms


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.split(",")]


def cell_km(text: str) -> tuple[float, float]:
    values = _numbers(text)
    if len(values) not in (1, 2) or not all(0 < v < float("inf") for v in values):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not the side of a cell: give km, or km east-west,km north-south"
        )
    return values[0], values[-1]


def bounds(text: str) -> tuple[float, float, float, float]:
    values = _numbers(text)
    if len(values) != 4:
        raise argparse.ArgumentTypeError(f"{text!r} must be four numbers: LAT0,LAT1,LON0,LON1")
    south, north, west, east = values
    on_earth = -90 <= south < north <= 90 and max(abs(west), abs(east)) <= 180 and west != east
    if not on_earth or (west > east and west - east < 180):
        raise argparse.ArgumentTypeError(
            f"{text} must ascend and be degrees: -90 <= LAT0 < LAT1 <= 90, -180 <= LON0 < LON1 <= "
            "180; across 180 degrees it goes on from -180, such as 179,-178"
        )
    return south, north, west, east


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def users(text: str) -> list[str]:
    """Names with commas, or of each line of @FILE."""
    if not text.startswith("@"):
        return names(text)
    try:
        with open(text[1:], encoding="utf-8") as file:
            found = [line.strip() for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise argparse.ArgumentTypeError(f"{text[1:]} cannot be read ({why})") from None
    if not found:
        raise argparse.ArgumentTypeError(f"{text[1:]} names nobody")
    return found


def kept(text: str) -> str | list[str]:
    """Names of columns, or "all"."""
    return text if text == "all" else names(text)


def delimiter(text: str) -> str:
    value = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(value) != 1 or not value.isascii() or value in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character: give e.g. ';', or tab")
    return value


def columns(text: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in text.split(","):
        role, equals, name = part.partition("=")
        role = role.strip()
        if not equals or role not in ROLES or not name or role in out:
            raise argparse.ArgumentTypeError(
                f"{part!r} is not ROLE=NAME with a role of {', '.join(ROLES)}, each at most once"
            )
        clock = tuple(name.split("+")) if role == "time" and name.count("+") == 1 else None
        out[role] = clock or name
    return out
