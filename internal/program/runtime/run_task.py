"""Calls a function of a file or module with a job's input and prints its result. Python 3.8 or
newer, standard library only."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import importlib
import importlib.util
import inspect
import io
import json
import os
import pathlib
import sys
import traceback
import typing
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))


class Out(io.TextIOWrapper):
    """Standard output that knows whether a line is incomplete."""

    begun = False

    def write(self, text):
        if text:
            self.begun = not text.endswith("\n")
        return super().write(text)


def say(mark, value):
    """Prints a line addressed to the runner."""
    text = json.dumps(value, allow_nan=False)
    if getattr(sys.stdout, "begun", False):
        sys.stdout.write("\n")
    sys.stdout.write(mark + text + "\n")
    sys.stdout.flush()


def read(name):
    """Returns a value from a variable or, if it is large, from a file."""
    path = os.environ.get(name + "_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ.get(name + "_JSON") or "null")


def module():
    """Returns the module of the function."""
    path, name = os.environ.get("ORK_TASK_FILE"), os.environ.get("ORK_TASK_MODULE")
    if not path:
        return importlib.import_module(name)
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    stem = pathlib.Path(path).stem
    name = stem if stem.isidentifier() and stem not in sys.modules else "ork_task_file"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError("%s is no file of Python" % path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def load(what="function"):
    """Returns the function or class to be called."""
    there = module()
    wanted = os.environ.get("ORK_TASK_FUNCTION") or "main"
    found = getattr(there, wanted, None)
    if not callable(found) or what == "class" and not inspect.isclass(found):
        kind = inspect.isclass if what == "class" else inspect.isfunction
        known = sorted(n for n, f in vars(there).items() if kind(f) and f.__module__ == there.__name__)
        place = os.environ.get("ORK_TASK_FILE") or os.environ.get("ORK_TASK_MODULE")
        raise AttributeError("there is no %s %r in %s; there are: %s" % (what, wanted, place, ", ".join(known) or "none"))
    return found


# --- arguments


def hints_of(function):
    try:
        return typing.get_type_hints(function)
    except Exception:  # an annotation may use undefined names
        return dict(getattr(function, "__annotations__", {}))


def is_context(parameter, hint):
    if isinstance(hint, type):
        return hint.__name__ == "Context" and hint.__module__.split(".")[0] in ("ork", "ork_sdk")
    if isinstance(hint, str):
        return hint.split(".")[-1] == "Context"
    return hint is None and parameter.name == "ctx"


def context():
    from ork import Context

    return Context.current()


def arguments(function, value):
    """Returns the positional and named arguments of the function or class for an input."""
    hints = hints_of(function.__init__ if inspect.isclass(function) else function)
    named, rest, args, kwargs = [], False, [], {}
    parameters = [p for p in inspect.signature(function).parameters.values()]
    for p in parameters:
        if p.kind is p.VAR_KEYWORD:
            rest = True
        elif p.kind is not p.VAR_POSITIONAL and not is_context(p, hints.get(p.name)):
            named.append(p)
    given = bind(named, rest, value)
    for p in parameters:
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        hint = hints.get(p.name)
        if is_context(p, hint):
            argument = context()
        elif p.name in given:
            argument = convert(given.pop(p.name), hint)
        else:
            if p.kind is p.POSITIONAL_ONLY and p.default is not p.empty:
                args.append(p.default)
            continue
        if p.kind is p.POSITIONAL_ONLY:
            args.append(argument)
        else:
            kwargs[p.name] = argument
    if rest:
        kwargs.update(given)
    return args, kwargs


def bind(parameters, rest, value):
    """Returns the parameters with their values from an input."""
    if not isinstance(value, dict):
        if not parameters or value is None and parameters[0].default is not inspect.Parameter.empty:
            return {}
        return {parameters[0].name: value}
    names = [p.name for p in parameters]
    if rest:
        return dict(value)
    if len(names) == 1 and names[0] not in value:
        if not value and parameters[0].default is not inspect.Parameter.empty:
            return {}
        return {names[0]: value}
    return {name: value[name] for name in names if name in value}


def convert(value, hint):
    """Converts a value to the type of its annotation; values of unsupported types stay unchanged.
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return convert_any(value, inside)
    if origin is not None and type(origin).__name__ == "_SpecialForm" or type(hint).__name__ == "_AnnotatedAlias":
        return convert(value, inside[0]) if inside and type(hint).__name__ == "_AnnotatedAlias" else value
    if value is None:
        return None
    if origin in (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable) and isinstance(value, list):
        items = [convert(v, inside[0]) for v in value] if inside else value
        return origin(items) if origin in (set, frozenset) else items
    if origin is tuple and isinstance(value, list):
        if len(inside) == 2 and inside[1] is Ellipsis:
            return tuple(convert(v, inside[0]) for v in value)
        return tuple(convert(v, t) for v, t in zip(value, inside)) if len(inside) == len(value) else tuple(value)
    if origin in (dict, collections.abc.Mapping) and isinstance(value, dict):
        return {k: convert(v, inside[1]) for k, v in value.items()} if len(inside) == 2 else value
    return convert_to(value, hint) if isinstance(hint, type) else value


def convert_any(value, hints):
    if value is None and type(None) in hints:
        return None
    for hint in hints:
        if hint is type(None):
            continue
        try:
            made = convert(value, hint)
        except Exception:
            continue
        if made is not value or isinstance(hint, type) and isinstance(value, hint):
            return made
    return value


def convert_to(value, hint):
    """Converts a value to an object of a class."""
    if isinstance(value, hint):
        return value
    if hasattr(hint, "model_validate"):
        return hint.model_validate(value)
    if hasattr(hint, "parse_obj"):
        return hint.parse_obj(value)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        hints = hints_of(hint)
        return hint(**{f.name: convert(value[f.name], hints.get(f.name)) for f in dataclasses.fields(hint) if f.init and f.name in value})
    if issubclass(hint, enum.Enum):
        return hint[value] if isinstance(value, str) and value in hint.__members__ and value not in [m.value for m in hint] else hint(value)
    if isinstance(value, str) and hint in (datetime.datetime, datetime.date, datetime.time):
        return hint.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if hint is decimal.Decimal and isinstance(value, (int, float, str)):
        return decimal.Decimal(str(value))
    if isinstance(value, str) and (hint is uuid.UUID or issubclass(hint, pathlib.PurePath)):
        return hint(value)
    if isinstance(value, list) and hint in (set, frozenset, tuple):
        return hint(value)
    return value


# --- results


def plain(value):
    """Returns a result as JSON-compatible values."""
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, (int, float)):
        return value
    if deferrable(value):
        return deferred(value)
    for method in ("model_dump", "dict"):
        if not isinstance(value, type) and callable(getattr(value, method, None)):
            return plain(getattr(value, method)())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {key(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        items = [plain(v) for v in value]
        try:
            return sorted(items)
        except TypeError:
            return items
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if type(value).__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError("a result of type %s is no JSON" % type(value).__name__)


def key(value):
    if value is None or isinstance(value, (bool, int, float)) and not isinstance(value, enum.Enum):
        return json.dumps(value, allow_nan=False)
    return str(plain(value))


def deferrable(value):
    return not isinstance(value, type) and callable(getattr(value, "service_type", None)) and callable(getattr(value, "to_dict", None))


def deferred(value):
    fields = dict(value.to_dict())
    fields.setdefault("service_type", value.service_type())
    if callable(getattr(value, "tracking_id", None)):
        fields.setdefault("job_id", value.tracking_id())
    return plain(fields)


def output(result):
    """Returns the output to be printed; external work is converted to its JSON form."""
    if deferrable(result):
        return {"deferred": [deferred(result)]}
    if isinstance(result, (list, tuple)) and result and all(deferrable(r) for r in result):
        return {"deferred": [deferred(r) for r in result]}
    return plain(result)


# --- executors


def execute():
    """Runs the task with an executor, a class that is created with its configuration."""
    made, config = load("class"), json.loads(os.environ.get("ORK_EXECUTOR_CONFIG") or "{}")
    args, kwargs = arguments(made, config)
    executor = made(*args, **kwargs)
    if not callable(getattr(executor, "run", None)):
        raise AttributeError("the executor %s has no method run(config_file, ctx, upstream)" % made.__name__)
    hints = hints_of(executor.run)
    given = [os.environ.get("ORK_CONFIG_FILE"), context(), read("ORK_UPSTREAM") or {}]
    args, kwargs = [], {}
    for p in inspect.signature(executor.run).parameters.values():
        if p.name == "input":
            kwargs["input"] = convert(read("ORK_INPUT"), hints.get("input"))
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and len(args) < len(given):
            args.append(convert(given[len(args)], hints.get(p.name)))
        elif p.kind is p.VAR_POSITIONAL:
            args += given[len(args):]
    return executor.run(*args, **kwargs)


# --- running


def prepare():
    """Our own modules come last on the path, so that installed ones take precedence."""
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
    sys.path.append(HERE)


def run():
    sys.stdout = Out(open(1, "wb", 0, closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True)
    result = execute() if os.environ.get("ORK_EXECUTOR") else call()
    if inspect.isawaitable(result):
        import asyncio  # this import takes as long as everything else here

        result = asyncio.run(awaited(result))
    if result is not None:
        try:
            say("ORK_OUTPUT:", output(result))
        except ValueError as error:
            raise ValueError("the result is no JSON: %s" % error) from None


def call():
    function = load()
    args, kwargs = arguments(function, read("ORK_INPUT"))
    return function(*args, **kwargs)


async def awaited(result):
    return await result


def main():
    prepare()
    try:
        run()
    except Exception as error:
        traceback.print_exc()
        if type(error).__name__ == "TaskError" and hasattr(error, "message"):
            say("ORK_ERROR:", {"message": str(error.message), "details": details(error)})
        elif "\n" in str(error).strip():  # the last line alone, which is reported separately, is not enough
            say("ORK_ERROR:", {"message": "%s: %s" % (type(error).__name__, str(error).strip())})
        sys.stderr.flush()
        sys.exit(1)


def details(error):
    try:
        told = plain(getattr(error, "details", None))
        json.dumps(told, allow_nan=False)
        return told
    except (TypeError, ValueError):
        return repr(error.details)


if __name__ == "__main__":
    if sys.argv[1:] == ["--inspect"]:
        import inspect_task

        sys.exit(inspect_task.main())
    if sys.argv[1:] == ["--warm"]:
        import warm

        warm.serve(main)
    main()
