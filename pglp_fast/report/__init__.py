"""A release in one file: policy, certificate, utility and adversary side by side, and a map to
step through; opens offline."""

from .table import report_table
from .write import write_report

__all__ = ["report_table", "write_report"]
