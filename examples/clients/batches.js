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

const input = await client.files.create({ file: await toFile(Buffer.from(lines), "questions.jsonl"), purpose: "batch" })
const order = { input_file_id: input.id, endpoint, completion_window: "24h" }

// what would it cost at most? X-Dry-Run: 1 works with every call, and runs nothing
const forecast = await client.batches.create(order, { headers: { "X-Dry-Run": "1" } })
console.log(`${forecast.lines} lines, ${forecast.invalid_lines} of them wrong, at most Rp${forecast.cost_idr}`)

let batch = await client.batches.create(order)
while (["validating", "in_progress", "cancelling", "finalizing"].includes(batch.status)) {
  await new Promise((resolve) => setTimeout(resolve, 500))
  batch = await client.batches.retrieve(batch.id)
}
console.log(`${batch.status}: ${batch.request_counts.completed} of ${batch.request_counts.total}, Rp${batch.total_cost_idr}`)
for (const { code, line, message } of batch.errors?.data ?? []) console.error(`line ${line}: ${code}: ${message}`)

if (batch.output_file_id) {
  const text = await (await client.files.content(batch.output_file_id)).text()
  for (const line of text.trim().split("\n")) {
    const { custom_id, response } = JSON.parse(line)
    console.log(`${custom_id}: ${response.body.choices[0].message.content}`)
  }
}
