from ork import Context


def users():
    return [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}]


def posts(ctx: Context):
    if ctx.attempt == 1:
        raise ConnectionError("the other side is not there yet")
    return [{"id": 10, "user": 1, "words": 3}, {"id": 11, "user": 2, "words": 5}, {"id": 12, "user": 1, "words": 4}]
