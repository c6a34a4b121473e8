"""Names that programs outside the repository use: they stay."""

import pglp_fast as pf

FIRST_RELEASE = """
    Attack AttackTable BudgetExceeded Certificate Comparison Domain Evidence Exposure
    GraphExponential Grid InvalidDomain InvalidEvidence InvalidLocation InvalidParameter
    InvalidPolicy InvalidState InvalidTable InvalidTransition KRR LM Mechanism MissingPackage
    MobilityModel Optimal PGLPError PIM PLM POIs PPIM PlanarLaplace Points PolicyGraph Privacy
    Remapped Repair Repairs SensitivityHull Stream TooLarge TraceReleaser TraceResult Traces
    Tracks Utility Worst __version__ attack blocks categories certify compare complete
    day_period disconnected estimate_utility experiments geo_ind get_num_threads isolated
    isolated_many iter_table neighbours8 plot privacy read_foursquare read_geolife read_gowalla
    read_peopleflow_pois read_table repair repair_many report_table sensitivity_hull
    set_num_threads utility write_report
"""
PERSONS_AND_TABLES = """
    Ledger Plan advise audit compose contact_tracing hide regions release_batches release_files
    release_table road_network
"""


def test_public_names_stay():
    assert set(f"{FIRST_RELEASE} {PERSONS_AND_TABLES}".split()) <= set(pf.__all__)


def test_methods_of_the_contract_stay():
    """What the documentation shows on maps, policies, streams, ledgers and plans."""
    methods = {
        pf.Grid: "from_bounds xy latlon locate",
        pf.Points: "xy nearest locate",
        pf.PolicyGraph: "from_edges from_scipy edges neighbours component distance with_edges "
        "constrain save load describe __and__ __or__",
        pf.Domain: "full from_mask cells __and__ __or__ __invert__ __len__ __contains__",
        pf.SensitivityHull: "area_km2 gauge",
        pf.Mechanism: "release matrix pmf",
        pf.MobilityModel: "fit",
        pf.TraceReleaser: "run start resume",
        pf.Stream: "step domain policy posterior ledger save",
        pf.Ledger: "epsilon graph save load merge",
        pf.Plan: "digest describe to_toml from_toml",
    }
    for kind, names in methods.items():
        assert [n for n in names.split() if not hasattr(kind, n)] == [], kind.__name__
