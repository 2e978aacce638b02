// The suite's command line, many times in one process, as it takes longer to start than to play most scenarios:
//
//     node suite.mjs INDEX
//
// Each line of its input is a JSON array with the arguments of a run; each line of its output says how one ended.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { Command } from "commander";

let program;
let run;
Command.prototype.parse = function () {
  program = this;
};
await import(pathToFileURL(process.argv[2]));

const print = process.stdout.write.bind(process.stdout);
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (text, ...more) => {
    if (run && run.code === undefined) run.output += text;
    more.find((each) => typeof each === "function")?.();
    return true;
  };
}
const exit = process.exit.bind(process);
process.exit = (code) => {
  run.end(code ?? 0);
  throw new Error("the run is over");
};
process.on("uncaughtException", (error) => {
  console.error(error);
  run?.end(1);
});

for await (const line of createInterface({ input: process.stdin })) {
  const ended = new Promise((resolve) => {
    const own = { output: "", end: (code) => resolve((own.code ??= code)) };
    run = own;
    const failed = (error) => {
      if (own.code === undefined) console.error(error);
      own.end(1);
    };
    program.parseAsync(JSON.parse(line), { from: "user" }).then(() => own.end(0), failed);
  });
  await ended;
  print(`${JSON.stringify(run)}\n`);
}
exit();
