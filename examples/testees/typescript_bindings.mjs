// Testee of generated TypeScript bindings: `node typescript_bindings.mjs FOLDER`, with the packages that
// `mcp-bindgen generate --language typescript --out FOLDER` writes. Node 24 reads TypeScript as it is.

import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { Rejected, Unsupported, serve } from "./testee.mjs";

const folder = resolve(process.argv[2]);
const packages = new Map();
for (const name of readdirSync(folder)) {
  const file = join(folder, name, "validators.ts");
  if (existsSync(file)) packages.set(name, await import(pathToFileURL(file)));
}

// The name of an extension in a package, by its id and version; drafts have no package.
const EXTENSIONS = {
  "io.modelcontextprotocol/skills@2026-07-28": "skills",
  "io.modelcontextprotocol/tasks@2026-07-28": "tasks",
  "io.modelcontextprotocol/ui@2026-01-26": "apps",
};

function read({ revision, definition, extension }, value) {
  const part = extension ? `-${EXTENSIONS[extension] ?? extension}` : "";
  const validator = packages.get(`mcp-${revision}${part}`)?.[definition];
  if (validator === undefined) throw new Unsupported(definition);
  const result = validator.safeParse(value);
  if (!result.success) throw new Rejected(result.error.message);
  return result.data;
}

const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
await serve({ name: "mcp-bindgen (TypeScript)", version: process.argv[3] ?? "", revisions }, read);
