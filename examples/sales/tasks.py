"""What was sold: functions that are tasks of sales.yaml."""

import csv
from pathlib import Path

from ork_sdk import CustomHttp


def find(folder: str = "data") -> dict:
    """Which files there are, one for each shop."""
    Path("work").mkdir(exist_ok=True)
    files = sorted(str(file) for file in Path(folder).glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"there are no files in {folder}")
    return {"files": files}


def add_up(item: str, ctx) -> dict:
    """What was sold in one shop. It is called for each file, some of them at the same time."""
    with open(item, newline="") as file:
        sold = sum(float(row["price"]) for row in csv.DictReader(file))
    ctx.log.info("%s: %g", item, sold)
    shop = Path(item).stem
    Path("work", shop).write_text(f"{sold:g}\n")
    return {"shop": shop, "sold": sold}


def send(add_up: list) -> CustomHttp:
    """Has another system print the report. The task is done when that is; nobody waits here meanwhile."""
    Path("work", "report").write_text("".join(f"{a['shop']} {a['sold']:g}\n" for a in add_up))
    return CustomHttp(url="mock://success/report")
