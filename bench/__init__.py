"""Measurements. Each module has `main(arguments)`, a first docstring line that says what it measures,
and prints ratios first: they mean the same on any machine."""
