"""All groups of golden cases by name; each is a function that gives name -> results."""

import golden_cli
import golden_errors
import golden_large
import golden_mechanisms
import golden_policies
import golden_traces
import golden_tracks

GROUPS = {
    **golden_policies.GROUPS,
    **golden_mechanisms.GROUPS,
    **golden_traces.GROUPS,
    **golden_tracks.GROUPS,
    **golden_large.GROUPS,
    **golden_errors.GROUPS,
    **golden_cli.GROUPS,
}


def results(group):
    return GROUPS[group]()
