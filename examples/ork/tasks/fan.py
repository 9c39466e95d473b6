import os
from typing import List

from ork import Context


def index(ctx: Context):
    return [ctx.parallel_index, ctx.parallel_count]


def discover():
    return {"count": 2, "files": ["a", "bb", "ccc"]}


def size(item: str, ctx: Context):
    return {"file": item, "size": len(item), "index": ctx.parallel_index}


def part(item: str, ctx: Context):
    return "%s%d of %d, item %s of %s" % (item, ctx.parallel_index, ctx.parallel_count, os.environ["item_index"], os.environ["item_count"])


def empty():
    return {"files": []}


def total(each: List[dict], none: list):
    return {"files": [e["file"] for e in each], "size": sum(e["size"] for e in each), "none": none}
