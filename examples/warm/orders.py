"""Orders and whether they add up: functions that are tasks of orders.yaml."""

import os


def read(orders: int = 24) -> dict:
    """What was ordered. Every fifth one says another sum than that of its lines."""
    return {"orders": [{"id": n, "lines": [n, 2 * n], "sum": 3 * n + (n % 5 == 0)} for n in range(1, orders + 1)]}


def check(item: dict, ctx) -> dict:
    """One order. What is kept here, in a variable or a file that is open, no other attempt sees."""
    ctx.log.info("process %d, forked by %d", os.getpid(), os.getppid())
    return {"id": item["id"], "right": sum(item["lines"]) == item["sum"]}


def report(check: list) -> dict:
    """Which ones somebody has to look at."""
    return {"checked": len(check), "wrong": [order["id"] for order in check if not order["right"]]}
