def greet(name: str, words: list):
    return {"text": " ".join(words) + ", " + name, "to": name}


def count(text: str) -> int:
    return len(text)


def repeat(times: int = 3):
    return "hello " * times
