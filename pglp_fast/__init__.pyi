# The public names, listed once: ``__init__.py`` loads them from here when they are first used.
# "as" tells type checkers that a name is meant to be used from here.
from . import (
    experiments as experiments,
    plot as plot,
)
from ._util.threads import (
    get_num_threads as get_num_threads,
    set_num_threads as set_num_threads,
)
from ._util.times import day_period as day_period
from ._version import __version__ as __version__
from .adversary.attack_table import AttackTable as AttackTable
from .adversary.attacks import (
    Attack as Attack,
    attack as attack,
)
from .adversary.events import Events as Events
from .adversary.evidence import Evidence as Evidence
from .adversary.mobility import MobilityModel as MobilityModel
from .adversary.profiles import (
    ProfileRow as ProfileRow,
    ProfileTable as ProfileTable,
    profile_attacks as profile_attacks,
)
from .errors import (
    BudgetExceeded as BudgetExceeded,
    InvalidDomain as InvalidDomain,
    InvalidEvidence as InvalidEvidence,
    InvalidLocation as InvalidLocation,
    InvalidParameter as InvalidParameter,
    InvalidPolicy as InvalidPolicy,
    InvalidState as InvalidState,
    InvalidTable as InvalidTable,
    InvalidTransition as InvalidTransition,
    MissingPackage as MissingPackage,
    PGLPError as PGLPError,
    TooLarge as TooLarge,
    UnsafeWarning as UnsafeWarning,
)
from .evaluation.advice import (
    Advice as Advice,
    AdviceRow as AdviceRow,
    advise as advise,
)
from .evaluation.audit import (
    Audit as Audit,
    audit as audit,
)
from .evaluation.comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .evaluation.estimated_utility import estimate_utility as estimate_utility
from .evaluation.exact_utility import utility as utility
from .evaluation.privacy import (
    Privacy as Privacy,
    privacy as privacy,
)
from .evaluation.utility_result import (
    Utility as Utility,
    Worst as Worst,
)
from .io import (
    POIs as POIs,
    Traces as Traces,
    Tracks as Tracks,
    iter_table as iter_table,
    read_foursquare as read_foursquare,
    read_geolife as read_geolife,
    read_gowalla as read_gowalla,
    read_peopleflow_pois as read_peopleflow_pois,
    read_table as read_table,
)
from .mechanisms.certificate import (
    Certificate as Certificate,
    certify as certify,
)
from .mechanisms.contract import Mechanism as Mechanism
from .mechanisms.graph_exponential import GraphExponential as GraphExponential
from .mechanisms.krr import KRR as KRR
from .mechanisms.optimal import Optimal as Optimal
from .mechanisms.planar_laplace import (
    PlanarLaplace as PlanarLaplace,
    geo_ind as geo_ind,
)
from .mechanisms.plm import (
    LM as LM,
    PLM as PLM,
)
from .mechanisms.ppim import (
    PIM as PIM,
    PPIM as PPIM,
)
from .mechanisms.remapped import Remapped as Remapped
from .pipeline.batches import release_batches as release_batches
from .pipeline.data_frames import release_table as release_table
from .pipeline.files import release_files as release_files
from .pipeline.geo_files import write_geo as write_geo
from .pipeline.plan import Plan as Plan
from .pipeline.released import Outcome as Outcome
from .policy.domain import Domain as Domain
from .policy.graph import PolicyGraph as PolicyGraph
from .policy.graph_repair import (
    Repair as Repair,
    Repairs as Repairs,
    repair as repair,
    repair_many as repair_many,
)
from .policy.isolated_nodes import (
    Exposure as Exposure,
    disconnected as disconnected,
    excluded as excluded,
    isolated as isolated,
    isolated_many as isolated_many,
)
from .policy.named import (
    blocks as blocks,
    categories as categories,
    complete as complete,
    neighbours8 as neighbours8,
)
from .policy.places import (
    contact_tracing as contact_tracing,
    hide as hide,
)
from .policy.regions import regions as regions
from .policy.roads import road_network as road_network
from .policy.sensitivity import (
    SensitivityHull as SensitivityHull,
    sensitivity_hull as sensitivity_hull,
)
from .policy.summary import PolicySummary as PolicySummary
from .report import (
    report_table as report_table,
    write_report as write_report,
)
from .space import synthetic as synthetic
from .space.grid import Grid as Grid
from .space.points import Points as Points
from .traces.certificate import TraceCertificate as TraceCertificate
from .traces.composition import compose as compose
from .traces.ledger import Ledger as Ledger
from .traces.releaser import TraceReleaser as TraceReleaser
from .traces.results import TraceResult as TraceResult
from .traces.schedule import Schedule as Schedule
from .traces.stream import Stream as Stream
