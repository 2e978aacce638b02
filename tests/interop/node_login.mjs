// A TypeScript client that logs a user in at a protected server, calls tools one after the other, and the last one again
// with a token that has to be renewed; it prints a line of JSON for each page that the user has to visit, and then what
// it saw:
//
//     node node_login.mjs PACKAGE REVISION URL TOOL,TOOL [PORT DOCUMENT]
//
// PACKAGE is `sdk` for @modelcontextprotocol/sdk or `client` for its successor, @modelcontextprotocol/client. The client
// registers itself, unless it is known by the metadata document with the URL DOCUMENT; users come back to PORT then.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const [name, revision, url, tools, port, clientMetadataUrl] = process.argv.slice(2);
const { Client, Http, UnauthorizedError } = await (name === "sdk" ? sdk() : successor());
const kept = {};
let state;
let comeBack;

const listener = createServer((request, response) => {
  response.end("You can close this window.");
  const { pathname, searchParams } = new URL(request.url, redirectUrl);
  if (pathname === "/callback") comeBack(searchParams);
});
await new Promise((resolve) => listener.listen(Number(port ?? 0), "127.0.0.1", resolve));
const redirectUrl = `http://127.0.0.1:${listener.address().port}/callback`;

const authProvider = {
  clientMetadataUrl,
  redirectUrl,
  clientMetadata: {
    client_name: "interop",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => (state = randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (found) => void (kept.discovery = found),
  discoveryState: () => kept.discovery,
  redirectToAuthorization: (address) => {
    kept.answer = new Promise((resolve) => (comeBack = resolve));
    console.log(JSON.stringify({ visit: String(address) }));
  },
};

async function sdk() {
  const base = "@modelcontextprotocol/sdk/client";
  const [{ Client }, { StreamableHTTPClientTransport: Http }, { UnauthorizedError }] = await Promise.all(
    ["index", "streamableHttp", "auth"].map((file) => import(`${base}/${file}.js`)),
  );
  return { Client, Http, UnauthorizedError };
}

async function successor() {
  const { Client, StreamableHTTPClientTransport: Http, UnauthorizedError } = await import("@modelcontextprotocol/client");
  return { Client, Http, UnauthorizedError };
}

// Has the user log in when something is not authorized, and does it again.
async function authorized(transport, body) {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const answer = await kept.answer;
  if (answer.get("state") !== state || !answer.has("code")) throw new Error(`not an answer to this login: ${answer}`);
  await (name === "sdk" ? transport().finishAuth(answer.get("code")) : transport().finishAuth(answer));
  return body();
}

const stateless = revision === "2026-07-28";
const negotiation = stateless ? { versionNegotiation: { mode: "auto" } } : {};
let client;
let transport;
await authorized(
  () => transport,
  () => {
    client = new Client({ name: "interop", version: "1.0" }, negotiation);
    transport = new Http(new URL(url), { authProvider });
    return client.connect(transport);
  },
);
const call = (tool) => authorized(() => transport, () => client.callTool({ name: tool, arguments: {} }));
const saw = { version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion, answers: [] };
for (const tool of tools.split(",")) saw.answers.push((await call(tool)).content[0].text);
if (kept.tokens.refresh_token !== undefined) {
  kept.tokens = { ...kept.tokens, access_token: "one-that-has-expired" };
  saw.renewed = (await call(tools.split(",").at(-1))).content[0].text;
}
saw.scope = kept.tokens.scope;
await client.close();
console.log(JSON.stringify({ saw }));
process.exit();
