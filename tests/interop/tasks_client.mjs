// The tasks client for TypeScript talks to `examples/conformance_server.py`, and prints as JSON what became of each tool:
//
//     node tasks_client.mjs REVISION URL
//
// In 2026-07-28 it leaves requests about tasks to its host, which is this file.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";

const [revision, url] = process.argv.slice(2);
const stateless = revision === "2026-07-28";
const clientInfo = { name: "interop", version: "1.0" };
const capabilities = { elicitation: { form: {} } };
const asked = [];
const saw = {};
let requests = 0;

async function connected() {
  const versions = stateless ? { versionNegotiation: { mode: "auto" } } : { supportedProtocolVersions: [revision] };
  const client = new Client(clientInfo, { capabilities, ...versions });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const host = { rawDispatch, v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: capabilities } };
  const session = createTaskSessionFromClient(client, { endpointId: "ours", onInputRequest, ...(stateless ? host : {}) });
  return { client, session };
}

async function rawDispatch({ method, params }, { signal, context } = {}) {
  const named = method === "tools/call" ? { "Mcp-Name": params.name } : {};
  const response = await fetch(url, {
    method: "POST",
    signal,
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": revision,
      "Mcp-Method": method,
      ...named,
      ...context?.headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++requests, method, params }),
  });
  const { result, error } = await response.json();
  return error ? { kind: "error", error } : { kind: "result", result };
}

async function onInputRequest({ kind, params }, { scope }) {
  asked.push({ kind, scope, message: params?.message });
  return { action: "accept", content: { confirm: true, name: "Ada" } };
}

async function outcomeOf(execution) {
  const { outcome } = await execution.settle();
  const { status, result, error } = outcome;
  return {
    kind: execution.kind,
    status,
    asked: asked.splice(0),
    ...(result && { text: result.content[0].text, isError: result.isError ?? false }),
    ...(error && { code: error.code ?? null, message: error.message }),
  };
}

async function step(name, body) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("it takes too long")), 60_000).unref());
  try {
    saw[name] = await Promise.race([body(), late]);
  } catch (error) {
    saw[name] = { thrown: String(error?.stack ?? error), cause: String(error?.cause ?? "") };
  }
}

const { client, session } = await connected();
const call = (name, args = {}) => session.callTool(name, args, { task: { preference: "prefer" } });
saw.capabilities = session.capabilities;

for (const [name, args] of [
  ["greet", { name: "Ada" }],
  ["slow_compute", { seconds: 0.2, label: "quick" }],
  ["failing_job", {}],
  ["protocol_error_job", {}],
  // in 2025-11-25 it does not wait where servers ask
  ...(stateless ? [["confirm_delete", { filename: "notes.txt" }], ["multi_input", {}], ["test_tool_with_task", {}]] : []),
]) {
  await step(name, async () => outcomeOf(await call(name, args)));
}
await step("cancelled", async () => {
  const execution = await call("slow_compute", { seconds: 60, label: "cancelled" });
  await execution.cancel();
  return outcomeOf(execution);
});
await step("resumed", async () => {
  const execution = await call("slow_compute", { seconds: 1, label: "resumed" });
  let reference;
  await execution.handoff((given) => void (reference = given)); // closing the session would cancel it all the same
  const another = await connected();
  const found = await outcomeOf(await another.session.resumeTask(reference));
  await another.client.close();
  return found;
});
console.log(JSON.stringify(saw));
await client.close();
