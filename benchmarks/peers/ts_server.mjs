// The same echo server on the official TypeScript SDK's low-level server, which tests/interop pins and installs.

import { createRequire } from "node:module";

const require = createRequire(new URL("../../tests/interop/package.json", import.meta.url));
const { Server } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");

const inputSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

serveStdio(() => {
  const server = new Server({ name: "echo", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools: [{ name: "echo", inputSchema }] }));
  server.setRequestHandler("tools/call", ({ params }) => ({ content: [{ type: "text", text: params.arguments.text }] }));
  return server;
});
