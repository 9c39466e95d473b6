import asyncio

from ork import Context, task


def whole(everything: dict):
    return everything


def one(a: int):
    return a


def two(a, b=2):
    return [a, b]


def rest(a, **others):
    return [a, others]


def positional(a, b=5, /, *, c=6):
    return [a, b, c]


@task
def told(a: int, context: Context):
    return [a, context.task_name, context.workflow_name, context.attempt, context.parallel_index]


def unannotated(ctx):
    return ctx.task_name


async def later(a: int):
    await asyncio.sleep(0)
    return a + 1


def main():
    return None


def received(one: int, main):
    return {"one": one, "main": main}
