// Testee of `@effect/ai`: its types of MCP, which are those of 2025-06-18.

import { readFileSync } from "node:fs";

import * as McpSchema from "@effect/ai/McpSchema";
import { Either, Schema } from "effect";

import { Rejected, Unsupported, serve } from "./testee.mjs";

const name = "@effect/ai";
const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, "utf-8"));

function read({ definition, extension }, value) {
  const schema = McpSchema[definition];
  if (extension || !Schema.isSchema(schema)) throw new Unsupported(definition);
  const result = Schema.decodeUnknownEither(schema)(value);
  if (Either.isLeft(result)) throw new Rejected(result.left.message);
  return Schema.encodeSync(schema)(result.right);
}

await serve({ name, version, revisions: ["2024-11-05", "2025-03-26", "2025-06-18"] }, read);
