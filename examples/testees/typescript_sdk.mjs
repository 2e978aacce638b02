// Testee of the official TypeScript SDK: `node typescript_sdk.mjs 1` or `2`. Its schemas are the same for all revisions.

import { readFileSync } from "node:fs";

import { Rejected, Unsupported, serve } from "./testee.mjs";

const isOld = process.argv[2] === "1";
const name = `@modelcontextprotocol/${isOld ? "sdk" : "core"}`;
const schemas = await import(isOld ? `${name}/types.js` : name);
const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, "utf-8"));
const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", ...(isOld ? [] : ["2026-07-28"])];

const WITH_TOOLS = "2025-11-25"; // the first revision whose results of sampling have tools

function schemaOf(revision, definition) {
  const withTools = revision >= WITH_TOOLS ? schemas[`${definition}WithToolsSchema`] : undefined;
  const found = withTools ?? schemas[`${definition}Schema`];
  if (found === undefined) throw new Unsupported(definition);
  return found;
}

function parse(revision, definition, value) {
  const result = schemaOf(revision, definition).safeParse(value);
  if (!result.success) throw new Rejected(result.error.message);
  return result.data;
}

// The envelope of a message is read by its own schema.
function read({ revision, definition, kind, envelope: hasEnvelope, extension }, value) {
  if (extension) throw new Unsupported(extension);
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (!kind || !hasEnvelope || definition.startsWith("JSONRPC") || !isObject)
    return parse(revision, definition, value);
  const envelope = parse(revision, kind === "request" ? "JSONRPCRequest" : "JSONRPCNotification", value);
  const { jsonrpc: _, id: __, ...body } = value;
  return { ...envelope, ...parse(revision, definition, body) };
}

await serve({ name, version, revisions }, read);
