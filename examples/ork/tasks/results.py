import datetime
import enum
import pathlib
import uuid
from decimal import Decimal

import beside


class Color(enum.Enum):
    RED = "red"


def many():
    return {
        "date": datetime.date(2026, 1, 31),
        "time": datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc),
        "set": {3, 1, 2},
        "decimal": Decimal("1.10"),
        "enum": Color.RED,
        "uuid": uuid.UUID(int=1),
        "path": pathlib.PurePosixPath("a/b"),
        "tuple": (1, None, True),
        1: "a key",
    }


def scalars():
    return [1, 2.5]


def noisy():
    print("ORK_OUTPUT:{no JSON")
    print("without an end", end="")
    return "said"


def neighbour():
    return beside.value


def not_a_number():
    return float("nan")


def generator():
    yield 1
