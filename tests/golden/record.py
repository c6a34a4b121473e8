"""Record golden results anew: ``python tests/golden/record.py [GROUP ...]``; all unless told."""

import sys
import time

import golden_groups
import golden_store

if __name__ == "__main__":
    for group in sys.argv[1:] or golden_groups.GROUPS:
        started = time.perf_counter()
        cases = golden_groups.results(group)
        golden_store.write(group, cases)
        print(f"{group}: {len(cases)} cases, {time.perf_counter() - started:.1f} s")
