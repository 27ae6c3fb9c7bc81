// A streamed answer with the official openai client: node examples/clients/chat.js "Why is the sky blue?"
import OpenAI from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const stream = await client.chat.completions.create({
  model: "svc-lyt",
  messages: [{ role: "user", content: process.argv[2] ?? "Why is the sky blue?" }],
  temperature: 0.2, // small models answer best near 0
  max_tokens: 200,
  stream: true,
  stream_options: { include_usage: true },
})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "")
  if (chunk.usage)
    console.log(
      `\n(${chunk.usage.prompt_tokens} + ${chunk.usage.completion_tokens} tokens, Rp${chunk.usage.cost_idr})`,
    )
}
