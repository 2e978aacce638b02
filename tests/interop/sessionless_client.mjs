// A TypeScript client of a server without sessions, which prints as JSON what it saw:
//
//     node sessionless_client.mjs sdk|client URL

const [name, url] = process.argv.slice(2);
const base = name === "sdk" ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";
const { Client } = await import(name === "sdk" ? `${base}/index.js` : base);
const { StreamableHTTPClientTransport } = await import(name === "sdk" ? `${base}/streamableHttp.js` : base);

const client = new Client({ name: "interop", version: "1.0" }, { capabilities: { roots: {} } });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const call = (tool, options) =>
  name === "sdk" ? client.callTool({ name: tool }, undefined, options) : client.callTool({ name: tool }, options);

const steps = [];
const counted = await call("count", { onprogress: ({ progress }) => void steps.push(progress) });
let refused;
try {
  await call("roots");
} catch (error) {
  refused = { code: error.code, message: error.message };
}
const session = transport.sessionId ?? null;
const capabilities = client.getServerCapabilities();
const tools = (await client.listTools()).tools.length;
await client.close();
console.log(JSON.stringify({ session, capabilities, tools, text: counted.content[0].text, steps, refused }));
process.exit(0);
