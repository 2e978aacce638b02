// Clients of generated packages on the official SDK: `node client.ts sdk|client ERA stdio COMMAND... | http URL`.
// Prints as JSON the answers of `tests/interop/full_server.py`.
import { Client as Second, StreamableHTTPClientTransport as SecondHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as SecondStdio } from "@modelcontextprotocol/client/stdio";
import { Client as First } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as stateful from "../mcp-2025-11-25/index.ts";
import * as stateless from "../mcp-2026-07-28/index.ts";

const info = { name: "typescript", version: "1.0.0" };
const [sdk, era, kind, ...target] = process.argv.slice(2) as [string, string, string, ...string[]];
const heard: unknown[] = [];

const answer = { model: "fake", role: "assistant" as const, content: { type: "text" as const, text: "Hi." } };
const handlers: stateful.ClientHandlers & stateless.ClientHandlers = {
  createMessage: () => answer,
  listRoots: () => ({ roots: [{ uri: "file:///one" }] }),
  onLoggingMessage: (params) => void heard.push(params.data),
};

function parts(): { command: string; args: string[]; stderr: "inherit" } {
  return { command: target[0]!, args: target.slice(1), stderr: "inherit" };
}

async function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "no error",
    (error) => error.code ?? String(error),
  );
}

async function converse(calls: stateful.CallsToServer | stateless.CallsToServer, log: object): Promise<object> {
  const listed = await calls.listTools();
  const more = await calls.listTools({ cursor: listed.nextCursor! });
  const added = await calls.callTool({ name: "add", arguments: { a: 2, b: 3 } });
  const sampled = await calls.callTool({ name: "sample", arguments: { prompt: "Hello?" } });
  const said = await calls.callTool({ name: "say", arguments: { text: "words" }, ...log });
  const read = await calls.readResource({ uri: "test://a" });
  const unknown = await failure(calls.callTool({ name: "nothing" }));
  const completion = await calls.complete({ ref: { type: "ref/prompt", name: "greet" }, argument: { name: "tone", value: "f" } });
  return { tools: [...listed.tools, ...more.tools].map((tool) => tool.name), added, sampled, said, read, unknown, completion };
}

let calls: stateful.CallsToServer | stateless.CallsToServer;
let close: () => Promise<void>;
if (sdk === "sdk") {
  const client = new First(info);
  calls = stateful.bindClient(client, handlers);
  const transport = kind === "stdio" ? new FirstStdio(parts()) : new FirstHttp(new URL(target[0]!));
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  close = () => client.close();
} else {
  const newest = { versionNegotiation: { mode: "auto" as const } };
  const client = new Second(info, era === "stateless" ? newest : { supportedProtocolVersions: [stateful.revision] });
  calls = era === "stateless" ? stateless.bindClient(client, handlers) : stateful.bindClient(client, handlers);
  await client.connect(kind === "stdio" ? new SecondStdio(parts()) : new SecondHttp(new URL(target[0]!)));
  close = () => client.close();
}
const log = era === "stateless" ? { _meta: { "io.modelcontextprotocol/logLevel": "debug" } } : {};
const found = await converse(calls, log);
console.log(JSON.stringify({ ...found, heard }));
await close();
