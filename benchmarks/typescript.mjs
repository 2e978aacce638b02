// The part of `typescript.py` that runs in node, in a folder with the generated packages and npm packages.
// Standard input has lines [revision, definition, text, verdict of the schema].
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire, stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import * as core from "@modelcontextprotocol/core";
import * as sdk from "@modelcontextprotocol/sdk/types.js";
import Ajv from "ajv/dist/2020.js";
import standalone from "ajv/dist/standalone/index.js";

process.removeAllListeners("warning");
const here = import.meta.dirname;
const require = createRequire(import.meta.url);
const schemas = JSON.parse(readFileSync(join(here, "schemas.json"), "utf-8"));
const revisions = Object.keys(schemas);
const newest = revisions.at(-2);

// --- exactness

const ours = Object.fromEntries(await Promise.all(revisions.map(async (name) => [name, await import(`./mcp-${name}/validators.ts`)])));
const judges = {
  "mcp-bindgen": (revision, definition) => ours[revision][definition],
  "sdk 1.x": (revision, definition) => (revision === revisions.at(-1) ? undefined : sdk[`${definition}Schema`]),
  "core 2.x": (revision, definition) => core[`${definition}Schema`],
};
const documents = readFileSync(0, "utf-8").trim().split("\n").map((line) => JSON.parse(line));

function verdict(judge, text) {
  try {
    return judge.safeParse(JSON.parse(text)).success;
  } catch {
    return false; // NaN is no JSON
  }
}

console.log("disagreement with the schema: wrong verdicts of judged documents (accepted wrongly, refused wrongly)");
for (const [name, find] of Object.entries(judges)) {
  for (const revision of revisions) {
    const judged = documents.filter(([one, definition]) => one === revision && find(one, definition)?.safeParse);
    if (judged.length === 0) continue;
    const wrong = judged.filter(([one, definition, text, valid]) => verdict(find(one, definition), text) !== valid);
    const accepted = wrong.filter(([, , , valid]) => !valid).length;
    const share = ((100 * wrong.length) / judged.length).toFixed(2);
    console.log(`  ${name.padEnd(12)} ${revision}  ${wrong.length} of ${judged.length} = ${share} % (${accepted}, ${wrong.length - accepted})`);
  }
}

// --- ajv

const names = Object.keys(schemas[newest]).filter((name) => ours[newest][name]);
const ajv = new Ajv({ code: { source: true, esm: true, lines: false }, strict: false, validateFormats: false });
ajv.addSchema({ $id: "mcp", $defs: schemas[newest] });
const code = standalone(ajv, Object.fromEntries(names.map((name) => [name, `mcp#/$defs/${name}`])));
writeFileSync(join(here, "ajv-validators.mjs"), code.replaceAll(/require\("(ajv\/[^"]+)"\)/g, (_, path) => `(await import("${path}.js")).default`));
const compiled = await import("./ajv-validators.mjs");

// --- speed

const request = {
  jsonrpc: "2.0",
  id: 7,
  method: "tools/call",
  params: { name: "search", arguments: { query: "weather", limit: 10, tags: ["a", "b"] }, _meta: { progressToken: 7 } },
};
const result = { content: [{ type: "text", text: "sunny" }, { type: "text", text: "21 degrees" }], structuredContent: { degrees: 21 }, isError: false };
const contenders = {
  "mcp-bindgen": [(value) => ours[newest].CallToolRequest.is(value), (value) => ours[newest].CallToolResult.is(value)],
  "ajv standalone": [compiled.CallToolRequest, compiled.CallToolResult],
  "sdk 1.x (zod)": [(value) => sdk.CallToolRequestSchema.safeParse(value).success, (value) => sdk.CallToolResultSchema.safeParse(value).success],
  "core 2.x (zod)": [(value) => core.CallToolRequestSchema.safeParse(value).success, (value) => core.CallToolResultSchema.safeParse(value).success],
};
const ROUNDS = 7;
const CALLS = 50_000;

function nanoseconds([checkRequest, checkResult]) {
  const begin = process.hrtime.bigint();
  for (let call = 0; call < CALLS; call++) {
    if (!checkRequest(request) || !checkResult(result)) throw new Error("a valid call was refused");
  }
  return Number(process.hrtime.bigint() - begin) / CALLS;
}

const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, checks] of Object.entries(contenders)) times[name].push(nanoseconds(checks));
}
console.log(`validating a tools/call, request and result, ${newest}: median of ${ROUNDS} rounds`);
const median = (values) => values.toSorted((a, b) => a - b)[ROUNDS >> 1];
const own = median(times["mcp-bindgen"]);
for (const [name, found] of Object.entries(times)) {
  console.log(`  ${name.padEnd(15)} ${median(found).toFixed(0).padStart(6)} ns = ${(median(found) / own).toFixed(1)} times ours`);
}

// --- size

const kilobytes = (text) => `${(text.length / 1000).toFixed(0)} kB, ${(gzipSync(text).length / 1000).toFixed(0)} kB gzipped`;
const read = (...parts) => readFileSync(join(...parts), "utf-8");
const script = (file) => stripTypeScriptTypes(read(here, `mcp-${newest}`, file)).replaceAll(/[ \t]+$/gm, "");
const first = dirname(require.resolve("@modelcontextprotocol/sdk/types.js"));
const second = dirname(require.resolve("@modelcontextprotocol/core"));
const parts = (start, end) => readdirSync(second).filter((name) => name.startsWith(start) && name.endsWith(end)).map((name) => read(second, name)).join("");
console.log(`size, ${newest}`);
console.log(`  mcp-bindgen     validators ${kilobytes(script("validators.ts") + script("validation.ts"))}; types ${kilobytes(read(here, `mcp-${newest}`, "types.ts"))}`);
console.log(`  ajv standalone  validators ${kilobytes(code)}`);
console.log(`  sdk 1.x         validators without zod ${kilobytes(read(first, "types.js"))}; types ${kilobytes(read(first, "../esm/types.d.ts"))}`);
console.log(`  core 2.x        validators without zod ${kilobytes(parts("schemas-", ".mjs"))}; types ${kilobytes(parts("schemas-", ".d.mts"))}`);
