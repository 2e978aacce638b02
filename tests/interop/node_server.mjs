// What `full_server.py` offers, on the TypeScript SDK's low-level server; tasks excepted, which it does not have.
//
//     node node_server.mjs                      serves standard input and output
//     node node_server.mjs --http HOST:PORT     serves Streamable HTTP at /mcp

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const INVALID_PARAMS = -32602;
const TEXTS = { "test://a": "alpha", "test://b": "beta" };
const FORM = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", minLength: 1 },
    age: { type: "integer", minimum: 0 },
    sure: { type: "boolean", default: true },
    colour: { type: "string", enum: ["red", "blue"] },
  },
  required: ["name"],
};
const ARGUMENTS = {
  add: { a: { type: "integer" }, b: { type: "integer" } },
  cancelled: {},
  change: {},
  count: { steps: { type: "integer" } },
  echo: { text: { type: "string" } },
  elicit: { question: { type: "string" } },
  fail: {},
  interview: {},
  kinds: {},
  listed: {},
  pause: {},
  ping: {},
  roots: {},
  route: { region: { type: "string", "x-mcp-header": "Region" } },
  sample: { prompt: { type: "string" } },
  say: { text: { type: "string" } },
  touch: { uri: { type: "string" } },
  visit: { url: { type: "string" } },
  wait: {},
};
const SINCE = { elicit: "2025-06-18", visit: "2025-11-25", interview: "2026-07-28", listed: "2026-07-28", route: "2026-07-28" };
const form = (message) => ({ method: "elicitation/create", params: { mode: "form", message, requestedSchema: FORM } });
const page_ = (url, more) => ({ method: "elicitation/create", params: { mode: "url", message: "Look", url, ...more } });
const roots = { method: "roots/list" };
const sampling = (text) => ({
  method: "sampling/createMessage",
  params: {
    messages: [{ role: "user", content: { type: "text", text } }],
    maxTokens: 50,
    systemPrompt: "Be brief.",
    temperature: 0.5,
    modelPreferences: { hints: [{ name: "small" }] },
  },
});

class InputRequired extends Error {
  constructor(inputRequests) {
    super("the client has to answer first");
    this.inputRequests = inputRequests;
  }
}

// Asks the client, in the way of the era.
async function ask(ctx, key, request) {
  if (!ctx.mcpReq.envelope) return ctx.mcpReq.send(request);
  const answer = ctx.mcpReq.inputResponses?.[key];
  if (answer === undefined) throw new InputRequired({ [key]: request });
  return answer;
}

const say = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });

// The items from the cursor on, and the cursor of those that follow.
function page(key, items, cursor, size) {
  const following = Number(cursor ?? 0) + size;
  const more = following < items.length ? { nextCursor: String(following) } : {};
  return { [key]: items.slice(following - size, following), ...more };
}

// What clients did; those of the stateless revision, which are strangers on each request, share one.
const blank = () => ({ cancelled: 0, lists: 0, uris: new Set() });
const shared = blank();
let tellListeners;

function server({ era }) {
  const modern = era === "modern";
  const state = modern ? shared : blank();
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
  };
  const offer = new Server({ name: "fixture", version: "1.0" }, { capabilities, instructions: "Try everything." });
  const revision = () => offer.getNegotiatedProtocolVersion();
  const tell = () => (modern && tellListeners) || {
    toolsChanged: () => offer.sendToolListChanged(),
    resourcesChanged: () => offer.sendResourceListChanged(),
    promptsChanged: () => offer.sendPromptListChanged(),
    resourceUpdated: (uri) => offer.sendResourceUpdated({ uri }),
  };
  const tools = {
    add: async (ctx, { a, b }) => ({ ...say({ sum: a + b }), ...(revision() >= "2025-06-18" && { structuredContent: { sum: a + b } }) }),
    cancelled: async () => say(state.cancelled),
    change: async () => {
      for (const kind of ["tools", "resources", "prompts"]) await tell()[`${kind}Changed`]();
      return say("changed");
    },
    count: async (ctx, { steps }) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (let progress = 1; progressToken !== undefined && progress <= steps; progress++) {
        const message = revision() >= "2025-03-26" ? { message: `step ${progress}` } : {};
        await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: steps, ...message } });
      }
      return say("counted");
    },
    echo: async (ctx, { text }) => say(text),
    elicit: async (ctx, { question }) => {
      const { action, content } = await ask(ctx, "user", form(question));
      return say({ action, content });
    },
    fail: async () => ({ ...say("it failed"), isError: true }),
    interview: async (ctx) => {
      const questions = { user: form("Who?"), model: sampling("Hello?"), roots };
      const answers = ctx.mcpReq.inputResponses ?? {};
      const known = ctx.mcpReq.requestState() === "known" || Object.keys(questions).every((key) => key in answers);
      if (!known) throw new InputRequired(questions);
      return say((await ask(ctx, "visit", page_("https://example.com"))).action);
    },
    kinds: async () => {
      const content = [
        { type: "text", text: "words" },
        { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
        { type: "resource", resource: { uri: "test://a", text: "alpha" } },
      ];
      if (revision() >= "2025-03-26") content.push({ type: "audio", data: "UklGRg==", mimeType: "audio/wav" });
      if (revision() >= "2025-06-18") content.push({ type: "resource_link", uri: "test://b", name: "b" });
      return { content };
    },
    listed: async () => say(state.lists),
    pause: async (ctx) => {
      for (const words of ["before", "cut here", "meanwhile"]) {
        await ctx.mcpReq.log("info", words);
        await sleep(100);
      }
      return say("resumed");
    },
    ping: async (ctx) => {
      await ctx.mcpReq.send({ method: "ping" });
      return say("pong");
    },
    roots: async (ctx) => say((await ask(ctx, "roots", roots)).roots.map((root) => root.uri)),
    route: async (ctx, { region }) => say(region),
    sample: async (ctx, { prompt }) => {
      const { model, content } = await ask(ctx, "model", sampling(prompt));
      return say({ model, text: content.text });
    },
    say: async (ctx, { text }) => {
      await ctx.mcpReq.log("debug", { text }, "fixture");
      await ctx.mcpReq.log("warning", text, "fixture");
      return say(text);
    },
    touch: async (ctx, { uri }) => {
      if (modern || state.uris.has(uri)) await tell().resourceUpdated(uri);
      return say("touched");
    },
    visit: async (ctx, { url }) => {
      const { action } = await ask(ctx, "visit", page_(url, modern ? {} : { elicitationId: "v1" }));
      if (!modern) await ctx.mcpReq.notify({ method: "notifications/elicitation/complete", params: { elicitationId: "v1" } });
      return say(action);
    },
    wait: async (ctx) => {
      await sleep(60_000, undefined, { signal: ctx.mcpReq.signal }).catch((error) => {
        state.cancelled += 1;
        throw error;
      });
      return say("waited");
    },
  };

  offer.setRequestHandler("tools/list", async ({ params }) => {
    const offered = Object.entries(ARGUMENTS).filter(([name]) => (SINCE[name] ?? "") <= revision());
    const every = offered.map(([name, properties]) => ({
      name,
      description: `Tries ${name}.`,
      inputSchema: { type: "object", properties, required: Object.keys(properties) },
    }));
    if (revision() >= "2025-06-18") {
      every[0].title = "Addition";
      every[0].outputSchema = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] };
    }
    return page("tools", every, params?.cursor, 10);
  });
  offer.setRequestHandler("tools/call", async ({ params }, ctx) => {
    if (!Object.hasOwn(tools, params.name)) throw new ProtocolError(INVALID_PARAMS, `Unknown tool: ${params.name}`);
    try {
      return await tools[params.name](ctx, params.arguments ?? {});
    } catch (error) {
      if (!(error instanceof InputRequired)) throw error;
      const { inputRequests } = error;
      return { resultType: "input_required", inputRequests, ...("visit" in inputRequests && { requestState: "known" }) };
    }
  });
  offer.setRequestHandler("resources/list", async ({ params }) => {
    const every = Object.keys(TEXTS).map((uri) => ({ uri, name: uri.at(-1), mimeType: "text/plain" }));
    every.push({ uri: "test://c", name: "c", mimeType: "application/octet-stream" });
    return page("resources", every, params?.cursor, 2);
  });
  offer.setRequestHandler("resources/templates/list", async ({ params }) => {
    const every = [
      { uriTemplate: "test://item/{id}", name: "item" },
      { uriTemplate: "test://square/{n}", name: "square" },
    ];
    return page("resourceTemplates", every, params?.cursor, 1);
  });
  offer.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    if (uri === "test://c") return { contents: [{ uri, blob: "AAEC", mimeType: "application/octet-stream" }] };
    if (uri in TEXTS) return { contents: [{ uri, text: TEXTS[uri], mimeType: "text/plain" }] };
    if (uri.startsWith("test://item/")) return { contents: [{ uri, text: `item ${uri.split("/").at(-1)}` }] };
    throw new ProtocolError(modern ? INVALID_PARAMS : -32002, "Resource not found", { uri });
  });
  if (!modern) {
    offer.setRequestHandler("resources/subscribe", async ({ params }) => (state.uris.add(params.uri), {}));
    offer.setRequestHandler("resources/unsubscribe", async ({ params }) => (state.uris.delete(params.uri), {}));
  }
  offer.setRequestHandler("prompts/list", async ({ params }) => {
    state.lists += 1;
    const every = [
      { name: "greet", description: "Says hello.", arguments: [{ name: "name", required: true }, { name: "tone" }] },
      { name: "show" },
    ];
    return { ...page("prompts", every, params?.cursor, 1), ...(modern && { ttlMs: 60_000, cacheScope: "private" }) };
  });
  offer.setRequestHandler("prompts/get", async ({ params: { name, arguments: known } }) => {
    const contents = { type: "resource", resource: { uri: "test://a", text: "alpha" } };
    if (name === "show") return { messages: [{ role: "user", content: contents }] };
    if (name !== "greet" || !known?.name) throw new ProtocolError(INVALID_PARAMS, "Unknown prompt, or no name");
    return { messages: [{ role: "user", content: { type: "text", text: `Greet ${known.name}.` } }] };
  });
  offer.setRequestHandler("completion/complete", async ({ params: { argument, context } }) => {
    const doctor = context?.arguments?.name?.includes("Dr.");
    const tones = ["formal", "friendly"].filter((tone) => !doctor || tone === "formal");
    const choices = argument.name === "id" ? [...Array(12).keys()].map((index) => String(index + 1)) : tones;
    const values = choices.filter((choice) => choice.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return offer;
}

// Keeps what clients may have missed.
class Events {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return String(this.#events.length);
  }

  async getStreamIdForEventId(id) {
    return this.#events[id - 1]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const { stream } = this.#events[id - 1];
    for (const [index, event] of this.#events.entries()) {
      if (index >= Number(id) && event.stream === stream && event.message.jsonrpc) await send(String(index + 1), event.message);
    }
    return stream;
  }
}

function overHttp(host, port) {
  const handler = createMcpHandler(server, { legacy: "reject" });
  tellListeners = handler.notify;
  const sessions = new Map();
  async function fetch(request) {
    if (!(await isLegacyRequest(request))) return handler.fetch(request);
    const known = request.headers.get("mcp-session-id");
    if (known) return sessions.get(known)?.handleRequest(request) ?? new Response(null, { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
      eventStore: new Events(),
      retryInterval: 50,
    });
    await server({ era: "legacy" }).connect(transport);
    return transport.handleRequest(request);
  }
  // On a busy machine a client may use a connection again when the 5 seconds of the default are just over.
  createServer({ keepAliveTimeout: 60_000 }, getRequestListener(fetch)).listen(port, host);
}

if (process.argv[2] === "--http") overHttp(...process.argv[3].split(":"));
else serveStdio(server);
