from ork_sdk import CustomHttp


def one():
    return CustomHttp("mock://success/one")


def several():
    return [CustomHttp("mock://success/a"), CustomHttp("mock://success/b")]


def with_data():
    return {"data": {"table": "t"}, "deferred": [CustomHttp("mock://success/table")]}


def fails():
    return CustomHttp("mock://failed")


def use(one, several, with_data):
    return {"one": one["deferred"][0]["service_type"], "several": len(several["deferred"]), "table": with_data["table"]}
