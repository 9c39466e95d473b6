from collections import defaultdict


def written(users, posts):
    words = defaultdict(int)
    for post in posts:
        words[post["user"]] += post["words"]
    return [{"name": user["name"], "words": words[user["id"]]} for user in users]
