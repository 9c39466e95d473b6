import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import List, Optional

try:
    from pydantic import BaseModel
except ImportError:  # what the runner asks of a model

    class BaseModel:
        @classmethod
        def model_validate(cls, fields):
            self = cls()
            vars(self).update({name: fields[name] for name in cls.__annotations__})
            return self

        def model_dump(self):
            return dict(vars(self))


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    price: float


@dataclass
class Order:
    id: int
    day: datetime.date
    at: str
    lines: List[Line]
    paid: Optional[bool] = None


def order(id: int, day: datetime.date, at: str, lines: List[Line], color: Color):
    return Order(id, day, at, lines, paid=color is Color.RED and len(lines) == 2 and isinstance(lines[0], Line))


def later(at: datetime.datetime):
    return at + datetime.timedelta(hours=1)


class Person(BaseModel):
    name: str
    tags: List[str]


def model(person: Person):
    person.tags = person.tags + [type(person).__name__]
    return person


def total(lines: List[Line]):
    return sum(Decimal(str(line.price)) for line in lines)
