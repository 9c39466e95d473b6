/**
 * Publishes a flow, starts a task of it, and follows the task to its end. worker.ts carries out its
 * jobs.
 *
 *     node build/examples/client.js 800 600
 */

import { Client } from "@troupe-engine/sdk";

const flow = `
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
`;

const [width, height] = process.argv.slice(2).map(Number);
const client = new Client();
await client.publish("thumbnails-typescript", flow);
// Starts with the same key are the same task, so a killed program can simply be started again.
const { id } = await client.start("thumbnails-typescript", { params: { width, height }, key: `${width}x${height}` });
for await (const event of client.watch(id)) {
  if (event.type === "step_ended") console.log(event.node, event.state);
}
const ended = await client.task(id);
console.log(`${ended.state}: ${ended.result ?? ended.error}`);
