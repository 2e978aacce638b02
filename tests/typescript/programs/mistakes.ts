// The compiler must report an error below each `@ts-expect-error`, and nowhere else.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import * as jobs from "../mcp-2026-07-28-tasks/index.ts";
import * as before from "../mcp-2024-11-05/index.ts";
import * as stateful from "../mcp-2025-11-25/index.ts";
import * as stateless from "../mcp-2026-07-28/index.ts";
import * as proposed from "../mcp-2026-12-01/index.ts";
import * as next from "../mcp-2027-01-15/index.ts";

const block = JSON.parse("{}") as stateful.types.ContentBlock;
if (block.type === "image") block.mimeType.length;
// @ts-expect-error a text has no media type
if (block.type === "text") block.mimeType.length;
// @ts-expect-error there is no such kind of content
if (block.type === "video") console.log();
// @ts-expect-error 2024-11-05 has no audio
if ((block as before.types.PromptMessage["content"]).type === "audio") console.log();

export const tool: stateful.types.Tool = { name: "add", inputSchema: { type: "object" } };
// @ts-expect-error the name is missing
export const nameless: stateful.types.Tool = { inputSchema: { type: "object" } };
// @ts-expect-error a misspelled member
export const misspelled: stateful.types.Tool = { name: "add", inputschema: {}, inputSchema: { type: "object" } };
// @ts-expect-error the constant is another one
export const array: stateful.types.Tool = { name: "add", inputSchema: { type: "array" } };
// @ts-expect-error a number is no role
export const role: stateful.types.Role = 1;
export const open: stateful.types.Open<stateful.types.Tool> = { ...tool, vendor: 1 };
export const metadata: stateful.types.CallToolResult = { content: [], _meta: { anything: 1 } };

export const handlers: stateful.ServerHandlers = {
  listTools: () => ({ tools: [tool] }),
  // @ts-expect-error a result of a tool has content
  callTool: () => ({}),
};
// @ts-expect-error there is no such method
export const burning: stateful.ServerHandlers = { burnTool: () => ({}) };
export const answers: stateless.ServerHandlers = {
  callTool: ({ _meta }) => {
    _meta["io.modelcontextprotocol/protocolVersion"].length;
    // @ts-expect-error each result has a resultType
    const result: stateless.types.CallToolResult = { content: [] };
    return result;
  },
};
const server = new Server({ name: "a", version: "1" });
const client = stateful.bindServer(server, {
  listTools: (_, { extra, peer }) => {
    extra.requestId;
    // @ts-expect-error the argument of the SDK has no such member
    extra.nothing;
    void peer.listRoots();
    // @ts-expect-error servers do not call tools
    void peer.callTool({ name: "add" });
    return { tools: [] };
  },
});
void client.elicit({ message: "Who?", requestedSchema: { type: "object", properties: {} } });
// @ts-expect-error the messages are missing
void client.createMessage({ maxTokens: 1 });
// @ts-expect-error not an endpoint of the SDK
stateful.bindServer({}, {});

export async function call(to: stateful.CallsToServer, job: jobs.CallsToServer, newer: next.CallsToServer): Promise<void> {
  const result = await to.callTool({ name: "add", arguments: { a: 1 } });
  result.content;
  const task = await to.callTool({ name: "add", task: {} });
  task.task.taskId;
  // @ts-expect-error a call for a task is answered by the task
  task.content;
  // @ts-expect-error the name is a text
  await to.callTool({ name: 1 });
  (await job.getTask({ taskId: "1" })).status;
  await newer.previewTool({ name: "add" });
  // @ts-expect-error 2025-11-25 has no such method
  await to.previewTool({ name: "add" });
}

export const outputs: proposed.types.CallToolResult = { resultType: "complete", outputs: [] };

export type Settings = jobs.types.Extensions["io.modelcontextprotocol/tasks"]["settings"]["server"];
export type Params = stateful.ParamsOf<"tools/call">["name"];
export const sent: stateful.SentBy<"server"> = "sampling/createMessage";
// @ts-expect-error clients send it
export const unsent: stateful.SentBy<"server"> = "tools/call";
const value: unknown = JSON.parse("{}");
if (stateful.validators.Tool.is(value)) value.name.length;
// @ts-expect-error not checked yet
value.name;
