// The TypeScript SDK's client, 1.x: lists, reads by name, reports.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const headers = { Authorization: `Bearer ${process.env.ACE_API_KEY}` };
const transport = new StreamableHTTPClientTransport(new URL(process.env.ACE_URL), {
  requestInit: { headers },
});
const client = new Client({ name: "typescript-1", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const call = async (name, args) =>
  (await client.callTool({ name, arguments: args })).structuredContent;
const read = await call("get_playbook", { name: "Fixing tests" });
const told = await call("report_outcome", {
  playbook_id: read.id,
  task_description: "Try TypeScript 1.x",
  outcome: "success",
  serving_id: read.serving_id,
  bullet_ids: ["str-00001"],
});
const advice = read.content.includes("[str-00001]");
const revision = transport.protocolVersion;
console.log(JSON.stringify({ revision, tools: tools.length, status: told.status, advice }));
await client.close();
