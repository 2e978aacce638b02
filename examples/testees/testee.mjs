// Testee protocol over standard input and output, for implementations in JavaScript.

import { createInterface } from "node:readline";

export class Unsupported extends Error {}
export class Rejected extends Error {}

/**
 * Answer the messages of the runner until it says `stop`.
 *
 * @param about `name`, `version` and `revisions` of the implementation.
 * @param read Returns the value that is written for a case; throws `Unsupported` or `Rejected`.
 */
export async function serve(about, read) {
  for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if (message.cmd === "stop") return;
    const reply =
      message.cmd === "start"
        ? { protocol: 1, language: "javascript", ...about }
        : { seq: message.seq, ...answer(about, read, message) };
    process.stdout.write(JSON.stringify(reply) + "\n");
  }
}

function answer(about, read, message) {
  if (!about.revisions.includes(message.revision)) return { unsupported: message.revision };
  try {
    return { accepted: JSON.stringify(read(message, JSON.parse(message.text))) };
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    if (error instanceof Rejected) return { rejected: error.message.slice(0, 300) };
    return { error: String(error).slice(0, 300) };
  }
}
