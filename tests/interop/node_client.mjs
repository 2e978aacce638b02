// A TypeScript client of `full_server.py`, which prints as JSON what it saw:
//
//     node node_client.mjs PACKAGE REVISION stdio COMMAND ARGUMENT...
//     node node_client.mjs PACKAGE REVISION sse|http URL
//
// With WRITTEN_ONCE in the environment it talks to `examples/written_once.py` instead.
// PACKAGE is `sdk` for @modelcontextprotocol/sdk or `client` for its successor, @modelcontextprotocol/client; `probing`
// is the latter when it first asks whether the server speaks a revision without sessions.
// Over stdio the client asks for its newest revision and takes what it gets; over HTTP it asks for REVISION.

const [name, revision, kind, ...target] = process.argv.slice(2);
const asks = kind !== "stdio";
const stateless = revision === "2026-07-28";
const logLevel = (level) => (stateless ? { "io.modelcontextprotocol/logLevel": level } : undefined);
const info = { name: "interop", version: "1.0" };
const capabilities = { sampling: {}, roots: { listChanged: true }, elicitation: { form: {}, url: {} } };
const roots = ["file:///projects/one", "file:///projects/two"];

const { client, transport, handle, listen, ask } = await (name === "sdk" ? sdk() : successor());
const saw = {};
const log = [];
const told = [];

async function sdk() {
  const base = "@modelcontextprotocol/sdk";
  const { Client } = await import(`${base}/client/index.js`);
  const { StdioClientTransport } = await import(`${base}/client/stdio.js`);
  const { SSEClientTransport } = await import(`${base}/client/sse.js`);
  const { StreamableHTTPClientTransport } = await import(`${base}/client/streamableHttp.js`);
  const types = await import(`${base}/types.js`);
  const schemas = new Map();
  for (const [key, schema] of Object.entries(types)) {
    if (/(Request|Notification)Schema$/.test(key) && schema.shape?.method?.value) schemas.set(schema.shape.method.value, schema);
  }
  const client = new Client(info, { capabilities });
  const transport = open(StdioClientTransport, SSEClientTransport, StreamableHTTPClientTransport);
  if (asks) {
    const send = transport.send.bind(transport);
    transport.send = (message, ...rest) => {
      if (message.method === "initialize") message.params.protocolVersion = revision;
      return send(message, ...rest);
    };
  }
  return {
    client,
    transport,
    handle: (method, handler) => client.setRequestHandler(schemas.get(method), handler),
    listen: (method, handler) => client.setNotificationHandler(schemas.get(method), handler),
    ask: (method, params) => client.request({ method, params }, types.ResultSchema),
  };
}

async function successor() {
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const anything = { "~standard": { version: 1, vendor: "interop", validate: (value) => ({ value }) } };
  const versions = asks && !stateless ? { supportedProtocolVersions: [revision] } : {};
  const probe = stateless || name === "probing" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client(info, { capabilities, ...versions, ...probe });
  return {
    client,
    transport: open(StdioClientTransport, SSEClientTransport, StreamableHTTPClientTransport),
    handle: (method, handler) => client.setRequestHandler(method, handler),
    listen: (method, handler) => client.setNotificationHandler(method, handler),
    ask: (method, params) => client.request({ method, params }, anything),
  };
}

function open(Stdio, Sse, Http) {
  if (asks) return new (kind === "sse" ? Sse : Http)(new URL(target[0]));
  return new Stdio({ command: target[0], args: target.slice(1), stderr: "inherit" });
}

// Runs a step and keeps what it returns, or how it failed.
async function step(feature, body) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("it takes too long")), 60_000).unref());
  try {
    saw[feature] = await Promise.race([body(), late]);
  } catch (error) {
    saw[feature] = { thrown: String(error?.stack ?? error) };
  }
}

// How a call was refused.
async function refused(call) {
  try {
    await call;
  } catch (error) {
    return { code: error.code, data: error.data ?? null };
  }
  return null;
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function text(tool, args = {}, options = undefined) {
  const result = await call(tool, args, options);
  return result.content[0].text;
}

function call(tool, args = {}, options = undefined, _meta = undefined) {
  const params = { name: tool, arguments: args, ...(_meta && { _meta }) };
  return name === "sdk" ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

// Hears of something while a function runs, where that has to be asked for.
async function listening(filter, body) {
  const subscription = stateless && (await client.listen(filter));
  const result = await body();
  if (subscription) await subscription.close();
  return result;
}

// All items of a list, page by page, and how many pages there were.
async function pages(method, key) {
  const items = [];
  let count = 0;
  let cursor;
  do {
    const page = await ask(method, cursor === undefined ? {} : { cursor });
    items.push(...page[key].map((item) => item.name));
    cursor = page.nextCursor;
    count += 1;
  } while (cursor !== undefined);
  return { items, count };
}

handle("sampling/createMessage", async ({ params }) => {
  const content = [params.messages.at(-1).content].flat()[0];
  log.push({ sampling: params });
  return { model: "fake", role: "assistant", stopReason: "endTurn", content: { type: "text", text: `I heard: ${content.text}` } };
});
handle("roots/list", async () => ({ roots: roots.map((uri) => ({ uri })) }));
handle("elicitation/create", async ({ params }) => {
  log.push({ elicitation: params });
  if (params.mode === "url") return { action: "accept" };
  if (params.requestedSchema.properties.line) return { action: "accept", content: { line: "Tea" } };
  return { action: "accept", content: { name: "Ada", age: 36, sure: true } };
});
for (const method of [
  "notifications/message",
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/resources/list_changed",
  "notifications/prompts/list_changed",
  "notifications/elicitation/complete",
]) {
  listen(method, ({ params }) => void told.push({ method, params: params ?? {} }));
}
const toldOf = (method) => told.filter((each) => each.method === method).map((each) => each.params);

await step("handshake", async () => {
  let version;
  const inner = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreed) => {
    version = agreed;
    inner?.(agreed);
  };
  await client.connect(transport);
  return {
    version: version ?? client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  };
});
if (process.env.WRITTEN_ONCE) await writtenOnce();
if (name === "sdk" && stateless) await report(); // there is nothing more that it can do
if (!stateless) await step("ping", async () => [await client.ping(), await text("ping")]);
await step("pagination", async () => ({
  tools: await pages("tools/list", "tools"),
  resources: await pages("resources/list", "resources"),
  templates: await pages("resources/templates/list", "resourceTemplates"),
  prompts: await pages("prompts/list", "prompts"),
  invalid: await refused(ask("tools/list", { cursor: "nonsense" })),
}));
await step("tools", async () => {
  const { tools } = await client.listTools();
  const words = "Grüße 🌍\n\u2028";
  const numbers = [...Array(20).keys()].map(String);
  return {
    add: tools[0],
    same: (await text("echo", { text: words })) === words,
    long: (await text("echo", { text: "x".repeat(1_000_000) })).length,
    parallel: await Promise.all(numbers.map((number) => text("echo", { text: number }))),
  };
});
await step("tool errors", async () => ({ fail: await call("fail"), unknown: await refused(call("nothing")) }));
await step("structured content", async () => ({
  add: (await call("add", { a: 2, b: 3 })).structuredContent ?? null,
  misfit: revision < "2025-06-18" || (await refused(call("misfit"))) !== null,
}));
await step("content kinds", async () => (await call("kinds")).content.map((block) => block.type));
await step("resources", async () => ({
  text: (await client.readResource({ uri: "test://a" })).contents,
  blob: (await client.readResource({ uri: "test://c" })).contents,
  unknown: await refused(client.readResource({ uri: "test://nothing" })),
}));
await step("templates", async () => ({
  templates: (await client.listResourceTemplates()).resourceTemplates.map((each) => each.uriTemplate),
  item: (await client.readResource({ uri: "test://item/7" })).contents[0].text,
}));
await step("subscriptions", async () => {
  if (!stateless) await client.subscribeResource({ uri: "test://a" });
  const subscribed = await listening({ resourceSubscriptions: ["test://a"] }, async () => {
    const count = await text("touch", { uri: "test://a" });
    await until(() => toldOf("notifications/resources/updated").length > 0);
    return count;
  });
  if (!stateless) await client.unsubscribeResource({ uri: "test://a" });
  while ((await text("touch", { uri: "test://a" })) !== "0");
  return { subscribed, updated: toldOf("notifications/resources/updated").map(({ uri }) => uri) };
});
await step("list changes", async () => {
  const changes = () => told.map((each) => each.method).filter((method) => method.endsWith("list_changed"));
  await listening({ toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true }, async () => {
    await call("change");
    await until(() => changes().length === 3);
  });
  return changes().sort();
});
await step("prompts", async () => {
  const { prompts } = await client.listPrompts();
  return {
    arguments: prompts[0].arguments,
    greet: (await client.getPrompt({ name: "greet", arguments: { name: "Ada" } })).messages,
    show: (await client.getPrompt({ name: "show" })).messages[0].content.type,
    invalid: await refused(client.getPrompt({ name: "greet" })),
  };
});
await step("completion", async () => {
  const ref = { type: "ref/prompt", name: "greet" };
  const argument = { name: "tone", value: "f" };
  const item = { ref: { type: "ref/resource", uri: "test://item/{id}" }, argument: { name: "id", value: "12" } };
  return {
    tone: (await client.complete({ ref, argument })).completion,
    item: (await client.complete(item)).completion.values,
    doctor: (await client.complete({ ref, argument, context: { arguments: { name: "Dr. X" } } })).completion.values,
  };
});
await step("logging", async () => {
  await call("say", { text: "one" }, undefined, logLevel("debug"));
  await until(() => toldOf("notifications/message").length === 2);
  if (stateless) await call("say", { text: "nobody listens" });
  else await client.setLoggingLevel("warning");
  await call("say", { text: "two" }, undefined, logLevel("warning"));
  await until(() => toldOf("notifications/message").length === 3);
  return toldOf("notifications/message");
});
await step("progress", async () => {
  const steps = [];
  const result = await text("count", { steps: 3 }, { onprogress: (progress) => void steps.push(progress) });
  return { result, steps };
});
await step("cancellation", async () => {
  const outcomes = new Set();
  for (const giveUp of [(timeout) => ({ timeout }), (timeout) => ({ signal: AbortSignal.timeout(timeout) })]) {
    const before = await text("cancelled");
    // longer each time, because a call that has not reached the server by then is not counted
    for (let timeout = 100; (await text("cancelled")) === before; timeout *= 2) {
      const [outcome] = await Promise.allSettled([call("wait", {}, giveUp(timeout))]);
      outcomes.add(outcome.status);
    }
  }
  return [...outcomes];
});
await step("sampling", async () => ({
  result: JSON.parse(await text("sample", { prompt: "Hello?" })),
  asked: log.find((each) => each.sampling)?.sampling,
}));
await step("roots", async () => {
  const found = JSON.parse(await text("roots"));
  if (!stateless) await client.sendRootsListChanged();
  return found;
});
if (revision >= "2025-06-18") {
  await step("elicitation", async () => ({
    result: JSON.parse(await text("elicit", { question: "Who?" })),
    asked: log.findLast((each) => each.elicitation)?.elicitation,
  }));
}
if (revision >= "2025-11-25") {
  await step("url elicitation", async () => {
    const result = await text("visit", { url: "https://example.com/pay" });
    await until(() => stateless || toldOf("notifications/elicitation/complete").length > 0);
    const asked = log.findLast((each) => each.elicitation)?.elicitation;
    return { result, asked, complete: toldOf("notifications/elicitation/complete") };
  });
}
if (revision === "2025-11-25") await step("tasks", name === "sdk" ? tasks : withoutTasks);
if (stateless) {
  await step("rounds", async () => {
    const before = log.length;
    const result = await text("interview");
    return { result, asked: log.slice(before).flatMap(Object.keys).sort() };
  });
  await step("caching", async () => {
    await client.listPrompts();
    const before = await text("listed");
    await client.listPrompts();
    return (await text("listed")) === before;
  });
  await step("mirrored arguments", async () => {
    const found = [];
    for (const region of ["eu-west", "Grüße 🌍", " padded "]) found.push(await text("route", { region }));
    return found;
  });
} else if (kind === "http") {
  await step("resuming", async () => {
    await client.setLoggingLevel("debug");
    const before = toldOf("notifications/message").length;
    const result = await text("pause");
    return { result, heard: toldOf("notifications/message").slice(before).map(({ data }) => data) };
  });
}
await step("shutdown", async () => {
  await client.close();
  return "closed";
});
await report();

async function report() {
  await new Promise((resolve) => process.stdout.write(JSON.stringify(saw), resolve));
  process.exit();
}

async function tasks() {
  const api = client.experimental.tasks;
  const kinds = [];
  let result;
  for await (const message of api.callToolStream({ name: "echo", arguments: { text: "later" } }, undefined, { task: { ttl: 60000 } })) {
    kinds.push(message.type);
    if (message.type === "result") result = message.result;
    if (message.type === "error") throw message.error;
  }
  let waiting;
  const stream = api.callToolStream({ name: "wait", arguments: {} }, undefined, { task: { ttl: 60000 } });
  for await (const message of stream) {
    if (message.type === "taskCreated") {
      waiting = message.task;
      break;
    }
  }
  return {
    first: kinds[0],
    last: kinds.at(-1),
    text: result.content[0].text,
    listed: (await api.listTasks()).tasks.length,
    before: (await api.getTask(waiting.taskId)).status,
    cancelled: (await api.cancelTask(waiting.taskId)).status,
    again: await refused(api.cancelTask(waiting.taskId)),
  };
}

// What `examples/written_once.py` offers.
async function writtenOnce() {
  for (const tool of ["sing", "find", "count", "rhyme", "tidy", "add"]) {
    await step(tool, async () => {
      if (tool === "add" && revision < "2025-06-18") return null;
      const result = await call(tool);
      return { error: result.isError ?? false, types: result.content.map((block) => block.type), text: result.content[0]?.text };
    });
  }
  await step("structured", async () => (await call("count")).structuredContent);
  await step("resources", async () => (await pages("resources/list", "resources")).items);
  await step("read", async () => (await client.readResource({ uri: "note:///song" })).contents[0].text);
  await step("unknown", async () => (await refused(client.readResource({ uri: "note:///nothing" }))).code);
  await step("prompt", async () => (await client.getPrompt({ name: "shorten", arguments: { note: "song" } })).messages[0].content.text);
  await step("completed", async () => {
    const ref = { type: "ref/prompt", name: "shorten" };
    return (await client.complete({ ref, argument: { name: "note", value: "so" } })).completion.values;
  });
  await step("progress", async () => {
    const steps = [];
    await call("tidy", {}, { onprogress: ({ progress }) => void steps.push(progress) });
    return steps;
  });
  await report();
}

// What the successor makes of a task.
async function withoutTasks() {
  const task = { ttl: 60000 };
  const refusal = await refused(client.callTool({ name: "echo", arguments: { text: "later" }, task }));
  return { refusal };
}
