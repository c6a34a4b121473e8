"""Every run of the suite draws the same cases: a failure is a bug, never bad luck."""

from hypothesis import HealthCheck, settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")
