// Lists the tools that a model may call, calls them, and shows the apps of their results. What an app asks for goes
// through here, one message at a time: this page decides, and the server behind it checks once more.
const get = async (path) => (await fetch(path)).json();
const call = async (name, args, by) => {
  const body = JSON.stringify({ name, arguments: args, by });
  const response = await fetch("/call", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return response.json();
};
const { tools, sandbox } = await get("/tools");

for (const tool of tools) {
  const button = document.createElement("button");
  button.textContent = tool.name;
  button.onclick = () => use(tool, {});
  document.querySelector("#tools").append(button);
}

async function use(tool, args) {
  const { result, error } = await call(tool.name, args, "model");
  document.querySelector("#text").textContent = error?.message ?? result.content.map((part) => part.text).join("\n");
  if (result && tool.app) show(tool, args, result);
}

function show(tool, args, result) {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts allow-same-origin"; // its own origin, which is not that of this page
  frame.title = tool.name;
  frame.src = `${sandbox}/?app=${encodeURIComponent(tool.app)}`;
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, sandbox);
  const notify = (method, params) => send({ method: `ui/notifications/${method}`, params });
  const hostInfo = { name: "mcp-bindgen-example-host", version: "1.0.0" };
  const handlers = {
    "ui/notifications/sandbox-proxy-ready": async () =>
      notify("sandbox-resource-ready", await get(`/app?uri=${encodeURIComponent(tool.app)}`)),
    "ui/initialize": () => ({
      result: {
        protocolVersion: "2026-01-26",
        hostInfo,
        hostCapabilities: { serverTools: {} },
        hostContext: { displayMode: "inline", availableDisplayModes: ["inline"], platform: "web" },
      },
    }),
    "ui/notifications/initialized": () => {
      notify("tool-input", { arguments: args });
      notify("tool-result", result);
    },
    "ui/notifications/size-changed": ({ height }) => {
      frame.style.height = `${Math.min(Math.max(Number(height) || 0, 100), 600)}px`;
    },
    "tools/call": ({ name, arguments: given }) => call(name, given, "app"),
  };
  addEventListener("message", async ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== sandbox || data?.jsonrpc !== "2.0") return;
    const handler = Object.hasOwn(handlers, data.method) ? handlers[data.method] : undefined;
    const answer = (await handler?.(data.params ?? {})) ?? { error: { code: -32601, message: "Method not found" } };
    if (data.id !== undefined) send({ id: data.id, ...answer });
  });
  document.querySelector("#app").replaceChildren(frame);
}
