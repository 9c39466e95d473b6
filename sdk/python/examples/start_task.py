"""Publishes a flow, starts a task of it, and follows the task to its end. resize_worker.py carries out its jobs.

    python3 examples/start_task.py 800 600
"""

import sys

from troupe_engine import Client

FLOW = """
start: resize
nodes:
  resize:
    exec_type: queue
    service: resize
    on_error: fail
    prep: {input_map: {width: $params.width, height: $params.height}}
    post: {output_key: size}
  describe:
    exec_type: queue
    service: describe
    prep: {input_key: size}
    post: {output_key: text}
edges:
  - {from: resize, action: default, to: describe}
result: text
"""


def main(width: int, height: int) -> None:
    with Client() as client:
        client.publish("thumbnails-python", FLOW)
        # Starts with the same key are the same task, so a killed program can simply be started
        # again.
        task = client.start("thumbnails-python", {"width": width, "height": height}, key=f"{width}x{height}")["id"]
        for event in client.watch(task):
            if event["type"] == "step_ended":
                print(event.get("node"), event.get("state"))
        ended = client.task(task)
        print(f"{ended['state']}: {ended.get('result') or ended.get('error')}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
