// An answer that always fits a JSON Schema: node examples/clients/structured.js "Budi, 31, lives in Bandung."
import OpenAI from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 60 },
    age: { type: "integer" },
    city: { type: "string", maxLength: 60 },
  },
  required: ["name", "age", "city"],
  additionalProperties: false,
}

// before anything is paid: which keywords are kept?
const { keywords, accepted } = await client
  .post("/schemas/check", { body: { schema } })
  .catch((error) => {
    if (error.status === 404) return { keywords: [], accepted: "not known here" }
    throw error
  })
console.log(`accepted: ${accepted}`)
for (const { path, verdict, reason } of keywords)
  console.log(`  ${path} ${verdict}${reason ? ` (${reason})` : ""}`)

const { choices } = await client.chat.completions.parse({
  model: "svc-lyt",
  messages: [
    { role: "system", content: "Extract the person as JSON." },
    { role: "user", content: process.argv[2] ?? "Budi, 31, lives in Bandung." },
  ],
  // with a schema library: zodResponseFormat(Person, "person") of openai/helpers/zod
  response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema } },
  max_tokens: 200,
})
console.log(JSON.parse(choices[0].message.content))
