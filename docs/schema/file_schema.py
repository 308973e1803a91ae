"""Write the JSON Schema of every file that the package writes, from the types that its codec reads.

Usage: python docs/schema/file_schema.py
"""

import inspect
import json
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pac_wrap.base.codec import form_of
from pac_wrap.base.text import LONGEST
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.classes import ClassCertificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.columns import FILED, Head
from pac_wrap.method.groups.values import MOST_GROUPS
from pac_wrap.method.monitoring.monitor import MonitorState
from pac_wrap.method.promise import Clause, Written

TARGET = Path(__file__).parents[2] / "src" / "pac_wrap" / "method" / "certificate.schema.json"
Schema = dict[str, Any]
HEX16, HEX64 = ({"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$"} for digits in (16, 64))
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
# each format, its version, and what stands in it
FORMATS: tuple[tuple[str, int, Any], ...] = (
    ("certificate", 3, Certificate),
    ("certificate of classes", 3, ClassCertificate),
    ("groups", 3, Head),
    ("curve", 1, Curve),
    ("monitor", 3, MonitorState),
)


def schema_of(kind: Any, known: dict[str, Schema]) -> Schema:
    """Return the schema of a type, as `typed` of the codec reads it; dataclasses go into `known`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        options = [option for option in arguments if option is not NoneType]
        tagged = len(options) > 1 and all(isinstance(getattr(one, "tag", None), str) for one in options)
        found = [schema_of(one, known) for one in (options if tagged else options[:1])]
        found += [{"type": "null"}] if NoneType in arguments else []
        return {"anyOf": found} if len(found) > 1 else found[0]
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0], known)}
    if is_dataclass(kind) and isinstance(kind, type):
        name = (form_of(kind) or kind).__name__
        if name not in known:
            known[name] = {}
            known[name] |= object_of(kind, known)
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if kind is float:
        return {"$ref": "#/$defs/number"}
    simple: dict[type, Schema] = {
        str: {"type": "string", "maxLength": LONGEST},
        int: {"type": "integer"},
        bool: {"type": "boolean"},
    }
    return simple[kind]


def object_of(kind: Any, known: dict[str, Schema]) -> Schema:
    """Return the schema of a dataclass: nothing may be missing, and nothing is unknown."""
    # what the form of a class does not explain, the class does
    told, kind = explained(Clause if kind is Written else kind), form_of(kind) or kind
    hints = get_type_hints(kind)
    tag = getattr(kind, "tag", None)
    properties: dict[str, Schema] = {"name": {"const": tag}} if isinstance(tag, str) else {}
    needed = list(properties)
    told |= explained(kind)
    for field in fields(kind):
        if field.init:
            text = {"description": told[field.name]} if field.name in told else {}
            properties[field.name] = text | schema_of(hints[field.name], known)
            needed += [] if field.metadata.get("optional", False) else [field.name]
    first = (inspect.getdoc(kind) or "").splitlines()[0]
    return {
        "description": first,
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def explained(kind: Any) -> dict[str, str]:
    """Return the description of each parameter from a docstring."""
    text = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")[2]
    found = re.findall(
        r"^([\w, ]+) : [^\n]*\n((?:    [^\n]*\n?)+)", re.split(r"\n\w+\n---", text)[0], re.MULTILINE
    )
    return {name.strip(): " ".join(said.split()) for names, said in found for name in names.split(",")}


def columns() -> dict[str, Schema]:
    """Return the schemas of the columns of groups: one value for all groups, or a list with one for each."""
    values: dict[str, Schema] = {"n": COUNT, "digest": HEX16}
    optional = ("beyond", "errors", "budget", "separable")
    values |= {name: {"anyOf": [COUNT, {"type": "null"}]} for name in optional}
    found: dict[str, Schema] = {}
    for name in FILED:
        value = values.get(name, {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]})
        row: Schema = {"anyOf": [value, {"type": "array", "items": value}]}
        both: Schema = {
            "description": "Normal points first, then anomalies.",
            "type": "array",
            "items": row,
            "minItems": 2,
            "maxItems": 2,
        }
        found[name] = row if name == "separable" else both
    group = {"type": ["string", "number", "boolean", "null"]}
    return {"groups": {"type": "array", "items": group, "minItems": 1, "maxItems": MOST_GROUPS}} | found


def build() -> str:
    """Return the text of the schema."""
    known: dict[str, Schema] = {"number": {"description": "A double; infinities are texts."} | NUMBER}
    options = []
    for name, version, kind in FORMATS:
        head: dict[str, Schema] = {"format": {"const": f"pac-wrap {name}"}, "schema": {"const": version}}
        body = object_of(kind, known)
        if kind is Head:
            body["properties"] |= columns()
            body["required"] += list(columns())
        body["properties"] = head | body["properties"] | {"checksum": HEX64}
        body["required"] = [*head, *body["required"], "checksum"]
        key = f"{name} file".replace(" ", "-")
        known[key] = body
        options.append({"$ref": f"#/$defs/{key}"})
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "PAC-Wrap",
        "description": "Certificates, curves and the states of monitors, each told by its format.",
        "oneOf": options,
        "$defs": known,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
