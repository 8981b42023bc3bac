"""A pretend language model: the OpenAI chat completions API, answered by rules.

An island: it imports nothing of the product and the product imports nothing of it. It is run
as a process of its own (`python -m model_stub serve`) and reached over HTTP only.
"""
