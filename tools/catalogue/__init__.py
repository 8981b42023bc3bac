"""The tools, each with its schema and its rules beside it."""
