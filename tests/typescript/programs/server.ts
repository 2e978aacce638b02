// Servers of generated packages on the official SDK: `node server.ts sdk|server stdio|PORT`.
// `sdk` is @modelcontextprotocol/sdk 1.x; `server` is @modelcontextprotocol/server 2.x, which speaks both eras.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Server as First } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpHandler, Server as Second } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as stateful from "../mcp-2025-11-25/index.ts";
import * as stateless from "../mcp-2026-07-28/index.ts";

const info = { name: "typescript", version: "1.0.0" };
const inputSchema = { type: "object", properties: { text: { type: "string" } } } as const;
const said = (text: string) => ({ content: [{ type: "text" as const, text }] });

const before: stateful.ServerHandlers = {
  listTools: () => ({ tools: [{ name: "echo", inputSchema }, { name: "sample", inputSchema }] }),
  async callTool({ name, arguments: given }, { peer }) {
    if (name === "echo") return { ...said(String(given?.["text"])), structuredContent: { text: given?.["text"] } };
    if (name === "invalid") return { content: "text" } as unknown as stateful.types.CallToolResult;
    if (name !== "sample") throw new stateful.ProtocolError(stateful.errorCodes.InvalidParams, "unknown tool", { name });
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Hello?" } }];
    const { model } = await peer.createMessage({ messages, maxTokens: 10 });
    return said(model);
  },
  listPrompts: (params) => ({ prompts: params?.cursor ? [] : [{ name: "greet" }], ...(params?.cursor ? {} : { nextCursor: "2" }) }),
};

const fresh = { resultType: "complete", ttlMs: 1000, cacheScope: "private" } as const;
const now: stateless.ServerHandlers = {
  listTools: () => ({ ...fresh, tools: [{ name: "echo", inputSchema }, { name: "sample", inputSchema }] }),
  callTool({ name, arguments: given, inputResponses, _meta }) {
    if (_meta["io.modelcontextprotocol/protocolVersion"] !== stateless.revision) throw new Error("no envelope");
    if (name === "echo") return { resultType: "complete", ...said(String(given?.["text"])), structuredContent: given };
    if (name === "invalid") return { resultType: "complete", content: "text" } as unknown as stateless.types.CallToolResult;
    if (name !== "sample") throw new stateless.ProtocolError(stateless.errorCodes.InvalidParams, "unknown tool", { name });
    const answer = inputResponses?.["model"];
    if (answer !== undefined && "model" in answer) return { resultType: "complete", ...said(answer.model) };
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Hello?" } }];
    const params = { messages, maxTokens: 10 };
    return { resultType: "input_required", inputRequests: { model: { method: "sampling/createMessage", params } } };
  },
  listPrompts: ({ cursor }) => ({ ...fresh, prompts: cursor ? [] : [{ name: "greet" }], ...(cursor ? {} : { nextCursor: "2" }) }),
};

function second({ era }: { era: "legacy" | "modern" }): Second {
  const server = new Second(info, { capabilities: {} });
  if (era === "modern") stateless.bindServer(server, now);
  else stateful.bindServer(server, before);
  return server;
}

const [sdk, place] = process.argv.slice(2) as [string, string];
if (sdk === "server") {
  if (place === "stdio") serveStdio(second);
  else createServer(getRequestListener((request) => createMcpHandler(second, { legacy: "reject" }).fetch(request))).listen(Number(place), "127.0.0.1");
} else {
  const server = new First(info, { capabilities: {} });
  stateful.bindServer(server, before);
  if (place === "stdio") await server.connect(new StdioServerTransport());
  else {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    createServer((request, response) => void transport.handleRequest(request, response)).listen(Number(place), "127.0.0.1");
  }
}
