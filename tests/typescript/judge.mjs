// Validates documents: `node judge.mjs FOLDER` reads lines [package, definition, text] and writes [fault, text after parsing].
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const packages = new Map();

async function validators(name) {
  if (!packages.has(name)) packages.set(name, await import(pathToFileURL(join(folder, `mcp-${name}`, "validators.ts"))));
  return packages.get(name);
}

function judge(validator, text) {
  try {
    return [null, JSON.stringify(validator.parse(JSON.parse(text)))];
  } catch (error) {
    return [error.message, null];
  }
}

const lines = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [name, definition, text] = JSON.parse(line);
  const validator = (await validators(name))[definition];
  if (validator === undefined) throw new Error(`${name} has no validator of ${definition}`);
  lines.push(JSON.stringify(judge(validator, text)));
}
process.stdout.write(lines.join("\n") + "\n");
