// The Inspector's command line, many times in one process, as it takes much longer to start than to ask:
//
//     node inspector.mjs INSPECTOR AT_ONCE
//
// It reads a JSON object with the arguments of each run by name, and prints one with what each printed and its exit code.
import { AsyncLocalStorage } from "node:async_hooks";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { handleError, runCli } = await import(pathToFileURL(process.argv[2]));
const running = new AsyncLocalStorage();
const print = process.stdout.write.bind(process.stdout);

for (const [name, stream] of Object.entries({ output: process.stdout, error: process.stderr })) {
  const write = stream.write.bind(stream);
  stream.write = (text, ...more) => {
    const run = running.getStore();
    if (run === undefined) return write(text, ...more);
    run[name] += text;
    more.find((each) => typeof each === "function")?.();
    return true;
  };
}
const exit = process.exit.bind(process);
process.exit = (code) => void (running.getStore().code = code ?? 0);

const waiting = Object.entries(await json(process.stdin));
const found = {};
async function work() {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [name, words] = next;
    found[name] = { code: 0, output: "", error: "" };
    await running.run(found[name], () => runCli(["node", "inspector", ...words]).catch(handleError));
  }
}
await Promise.all(Array.from({ length: Number(process.argv[3]) }, work));
print(JSON.stringify(found), () => exit(0));
