"""Make arguments fit a tool's JSON schema, as a model under constrained decoding does."""

from typing import Any


def conform(args: dict[str, Any], tool: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with null for what a strict schema requires and nobody gave."""
    function = tool["function"]
    if function.get("strict") is not True:
        return args
    return _filled(args, function.get("parameters") or {}, function.get("parameters") or {})


def _filled(args: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    result = dict(args)
    for name in schema.get("required") or ():
        result.setdefault(name, None)
    for name, value in args.items():
        inner = _resolved(properties.get(name) or {}, root)
        if isinstance(value, dict):
            result[name] = _filled(value, inner, root)
        elif isinstance(value, list):
            each = _resolved(inner.get("items") or {}, root)
            result[name] = [_filled(v, each, root) if isinstance(v, dict) else v for v in value]
    return result


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Follow `$ref` and look through `anyOf` for the branch that is not null."""
    for branch in schema.get("anyOf") or ():
        if branch.get("type") != "null":
            return _resolved(branch, root)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = root
        for key in reference[2:].split("/"):
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return _resolved(found, root) if isinstance(found, dict) else {}
    return schema


def example(schema: dict[str, Any], root: dict[str, Any], hints: dict[str, Any]) -> Any:
    """Return the smallest value that fits a schema, with a hint where a property has one."""
    schema = _resolved(schema, root)
    if schema.get("enum"):
        return "other" if "other" in schema["enum"] else schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties") or {}
        return {
            name: hints[name] if name in hints else example(properties.get(name) or {}, root, hints)
            for name in schema.get("required") or ()
        }
    plain_values: dict[Any, Any] = {
        "array": [],
        "integer": 1,
        "number": 1,
        "boolean": False,
        "null": None,
    }
    if isinstance(kind, list):
        return None if "null" in kind else ""
    return plain_values.get(kind, "")
