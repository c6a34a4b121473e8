"""Errors of releases."""
