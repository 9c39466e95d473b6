"""Prints the parameter and result types of a file's functions, as types of workflow files. Python
3.8 or newer, standard library only."""

import dataclasses
import datetime
import enum
import inspect
import typing

import run_task

SCALARS = {str: "str", int: "int", float: "float", bool: "bool", datetime.datetime: "datetime_tz", datetime.date: "date"}
LISTS = ("list", "List", "Sequence", "Iterable", "Set", "set", "FrozenSet", "frozenset", "Tuple", "tuple")


class Types:
    """The named types: those of classes with fields."""

    def __init__(self):
        self.named = {}

    def of(self, hint):
        """Returns a type in the notation of workflow files; None if they have none for it."""
        if hint in SCALARS:
            return SCALARS[hint]
        origin, inside = typing.get_origin(hint), typing.get_args(hint)
        if type(hint).__name__ == "_AnnotatedAlias" and inside:
            return self.of(inside[0])
        if origin is typing.Union or type(hint).__name__ == "UnionType":
            return self.one_of(inside)
        if origin is not None and getattr(origin, "__name__", "") in LISTS:
            return self.list_of(inside)
        if type(hint).__name__ in ("_LiteralGenericAlias", "_GenericAlias") and inside and str(origin) == "typing.Literal":
            return self.common([type(v) for v in inside])
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self.common([type(member.value) for member in hint])
        return self.named_type(hint) if isinstance(hint, type) else None

    def one_of(self, hints):
        some = [h for h in hints if h is not type(None)]
        of = self.of(some[0]) if len(some) == 1 else None
        return of + "?" if isinstance(of, str) and len(some) < len(hints) else of

    def list_of(self, inside):
        of = self.of(inside[0]) if len(inside) == 1 or len(inside) == 2 and inside[1] is Ellipsis else None
        return None if of is None else [of]

    def common(self, kinds):
        return SCALARS.get(kinds[0]) if kinds and len(set(kinds)) == 1 else None

    def named_type(self, cls):
        fields = fields_of(cls)
        if fields is None:
            return None
        if cls.__name__ not in self.named:
            self.named[cls.__name__] = {}  # it may contain itself
            self.named[cls.__name__] = {name: self.of(hint) for name, hint in fields.items()}
        return "types." + cls.__name__


def fields_of(cls):
    """Returns the annotated fields of a data class, a pydantic model or a TypedDict; None for other
    classes."""
    hints = run_task.hints_of(cls)
    if dataclasses.is_dataclass(cls):
        return {f.name: hints.get(f.name) for f in dataclasses.fields(cls) if f.init}
    for fields in ("model_fields", "__fields__"):
        if isinstance(getattr(cls, fields, None), dict):
            return {name: hints.get(name) for name in getattr(cls, fields)}
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        return hints
    return None


def signature(function, types):
    hints = run_task.hints_of(function)
    parameters, required = {}, []
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or run_task.is_context(p, hints.get(p.name)):
            continue
        parameters[p.name] = types.of(hints.get(p.name))
        if p.default is p.empty:
            required.append(p.name)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
    told = {"input_type": parameters, "required": required, "output_type": types.of(hints.get("return"))}
    if open_ended:
        told["more"] = True
    return told


def main():
    run_task.prepare()
    module = run_task.module()
    types, functions = Types(), {}
    for name, value in vars(module).items():
        value = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__:
            functions[name] = signature(value, types)
    run_task.say("ORK_OUTPUT:", {"types": types.named, "functions": functions})
