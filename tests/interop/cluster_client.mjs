// The TypeScript SDK as a user of `examples/cluster_server.py`, which prints as JSON what it saw:
//
//     node cluster_client.mjs URL ROUNDS

const base = "@modelcontextprotocol/sdk";
const { Client } = await import(`${base}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${base}/client/streamableHttp.js`);
const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = await import(`${base}/types.js`);

const [url, rounds] = process.argv.slice(2);
const client = new Client({ name: "cluster", version: "1.0" }, { capabilities: { elicitation: {} } });
const saw = { counts: [], answers: [], updates: 0 };
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ action: "accept", content: { answer: params.message } }));
client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => saw.updates++);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.subscribeResource({ uri: "note://1" });
for (let round = 0; round < Number(rounds); round++) {
  const progress = [];
  const call = (name, args) =>
    client.callTool({ name, arguments: args }, undefined, { onprogress: (each) => progress.push(each.progress) });
  const said = await call("count", { to: 5, delay_ms: 20 });
  saw.counts.push([progress, said.content[0].text]);
  saw.answers.push((await call("ask", { question: `question ${round}` })).content[0].text);
  await call("announce", { uri: "note://1" });
}
for (let left = 1200; left && saw.updates < Number(rounds); left--) await new Promise((done) => setTimeout(done, 50));
await new Promise((done) => setTimeout(done, 200));
await client.close();
console.log(JSON.stringify(saw));
