// Many requests at half the price: a file of lines goes in, a file of answers comes out.
import OpenAI, { toFile } from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const endpoint = "/v1/chat/completions"
const questions = ["Why is the sky blue?", "What is a cat?", "Count to five."]
const lineOf = (content, index) => ({
  custom_id: `question-${index}`,
  method: "POST",
  url: endpoint,
  body: { model: "svc-lyt", max_tokens: 30, messages: [{ role: "user", content }] },
})
const lines = questions.map((question, index) => JSON.stringify(lineOf(question, index))).join("\n")

const input = await client.files.create({
  file: await toFile(Buffer.from(lines), "questions.jsonl"),
  purpose: "batch",
})
const order = { input_file_id: input.id, endpoint, completion_window: "24h" }

// what would it cost at most? X-Dry-Run: 1 works with every call, and runs nothing
const forecast = await client.batches.create(order, { headers: { "X-Dry-Run": "1" } })
console.log(
  `${forecast.lines} lines, ${forecast.invalid_lines} of them wrong, at most Rp${forecast.cost_idr}`,
)

let batch = await client.batches.create(order)
while (["validating", "in_progress", "cancelling", "finalizing"].includes(batch.status)) {
  await new Promise((resolve) => setTimeout(resolve, 2000)) // a new key may ask 60 times a minute; webhooks.js need not ask
  batch = await client.batches.retrieve(batch.id)
}
console.log(
  `${batch.status}: ${batch.request_counts.completed} of ${batch.request_counts.total}, Rp${batch.total_cost_idr}`,
)
for (const { code, line, message } of batch.errors?.data ?? [])
  console.error(`line ${line}: ${code}: ${message}`)

/** A file may have no lines: the output, where every request failed. */
const answers = async (file) => {
  const text = file ? await (await client.files.content(file)).text() : ""
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
for (const { custom_id, response } of await answers(batch.output_file_id))
  console.log(`${custom_id}: ${response.body.choices[0].message.content}`)
for (const { custom_id, error } of await answers(batch.error_file_id))
  console.error(`${custom_id} failed: ${error.message}`)
