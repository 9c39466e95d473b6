/**
 * Test environment: a real member in a process of its own, and a relay in front of it that can be
 * cut.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { inspect } from "node:util";

import { FailedError } from "@troupe-engine/sdk";

/** Unusual thrown values, and the expected error texts. */
export const oddErrors: Record<string, [error: unknown, told: string]> = {
  "no text": [Object.create(null), "failed"],
  "a number": [Object.assign(new Error(), { message: 7 }), "7"],
  "a message that throws": [Object.defineProperty(new Error(), "message", { get: () => { throw new Error("no"); } }), "failed"],
  "not to be shown": [Object.assign(new Error("no such row"), { [inspect.custom]: () => { throw new Error("no"); } }), "no such row"],
  "details not to be shown": [new FailedError("no row", { details: { n: 1n, [inspect.custom]: () => { throw new Error("no"); } } }), "no row"],
};

/** Time limit for everything that should happen by itself. */
export const patience = 60_000;

/** A member, on an SQLite store of its own or beside others. */
export class Member {
  private constructor(
    readonly url: string,
    private readonly process: ChildProcess,
    private readonly dir: string,
  ) {}

  static async start(...flags: string[]): Promise<Member> {
    return Member.startOn(undefined, ...flags);
  }

  /** Starts a member on a store that others may use; undefined means a new store. */
  static async startOn(store: string | undefined, ...flags: string[]): Promise<Member> {
    const binary = process.env["TROUPE_BINARY"];
    if (!binary) throw new Error("TROUPE_BINARY names no troupe: run the tests by 'go test ./sdk', or build ./cmd/troupe and set it");
    const dir = mkdtempSync(join(tmpdir(), "troupe-typescript-"));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TROUPE_")));
    const args = ["serve", "--store", store ?? `sqlite:${join(dir, "troupe.db")}`, "--listen", "127.0.0.1:0", "--worker-ttl", "2s", ...flags];
    const child = spawn(binary, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    child.stderr.pipe(createWriteStream(join(dir, "member.log")));
    for await (const line of createInterface(child.stdout)) {
      const url = /^Troupe serves (\S+) from/.exec(line)?.[1];
      if (url !== undefined) return new Member(url, child, dir);
    }
    throw new Error(`the member does not start: ${readFileSync(join(dir, "member.log"), "utf8")}`);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /**
   * Kills it at once. A graceful end would wait for connections that fetch has opened and not used
   * yet.
   */
  async stop(): Promise<void> {
    await this.end("SIGKILL");
    rmSync(this.dir, { recursive: true });
  }

  /** Sends it a signal, and waits until it has ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill(signal);
    await exited;
  }
}

/**
 * Relays connections to a port. Each of the first ones is cut off after the given number of bytes
 * of its answers.
 */
export class Relay {
  connections = 0;
  /** Number of received bytes that were not forwarded. */
  held = 0;
  /** Delay of data to the member. */
  lagMs = 0;
  #holding = false;
  readonly #open = new Set<Socket>();

  private constructor(
    readonly port: number,
    private readonly server: Server,
  ) {}

  static async start(to: number, options: { cutAfter?: number[]; listen?: number } = {}): Promise<Relay> {
    const server = createServer();
    const port = options.listen ?? (await freePort());
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const relay = new Relay(port, server);
    const cuts = [...(options.cutAfter ?? [])];
    server.on("connection", (client) => relay.#pass(client, to, cuts.shift() ?? Infinity));
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  #pass(client: Socket, to: number, most: number): void {
    this.connections++;
    const member = connect(to, "127.0.0.1");
    for (const [socket, other] of [[client, member], [member, client]] as const) {
      this.#open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#open.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (data) => {
      if (this.#holding) this.held++;
      else if (this.lagMs > 0) setTimeout(() => member.write(data), this.lagMs);
      else member.write(data);
    });
    member.on("data", (data) => {
      if (this.#holding) return;
      client.write(data.subarray(0, most));
      most -= data.length;
      if (most <= 0) client.end(() => client.destroy());
    });
  }

  /** Silently stops forwarding. */
  hold(): void {
    this.#holding = true;
  }

  /** Closes all connections. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Closes all connections and refuses new ones. */
  close(): void {
    this.server.close();
    for (const socket of this.#open) socket.destroy();
  }
}

/** Returns an address without a listener. */
export async function refused(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/**
 * Returns a port below the kernel's ephemeral range. In that range a client that dials a closed
 * port may be assigned the same port and connect to itself.
 */
async function freePort(): Promise<number> {
  for (let i = 0; i < 100; i++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.on("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw new Error("no port is free");
}

/** Waits for a condition. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + patience; Date.now() < end; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("it never came about");
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Items passed from one part of a test to another. */
export class Told<T> {
  readonly #items: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];

  put(item: T): void {
    const taker = this.#takers.shift();
    if (taker) taker(item);
    else this.#items.push(item);
  }

  async take(): Promise<T> {
    if (this.#items.length > 0) return this.#items.shift() as T;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("nothing was told")), patience);
      this.#takers.push((item) => {
        clearTimeout(timer);
        resolve(item);
      });
    });
  }

  get size(): number {
    return this.#items.length;
  }
}
