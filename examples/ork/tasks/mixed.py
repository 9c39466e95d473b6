def settings(path: str, depth: int):
    return path + "/*" * depth


def run(input: dict):
    return input
