def report(written, people, title):
    most = max(written, key=lambda row: row["words"])
    return {"title": title, "average": sum(row["words"] for row in written) / len(people), "most": most["name"]}
