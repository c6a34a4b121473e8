"""Values as JSON takes them."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """The value with NaN and infinities as null, and NumPy's arrays and numbers as Python's."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
