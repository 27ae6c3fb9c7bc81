// Which sentence is nearest? Vectors have norm 1, so the dot product is the cosine.
import OpenAI from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const input = [
  "How do I reset my password?",
  "I forgot my login secret",
  "The weather is lovely today",
]
const { data, usage } = await client.embeddings.create({
  model: "svc-embed",
  input,
  dimensions: 1024,
})
const [query, ...others] = data.map((item) => item.embedding)
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0)
for (const [i, vector] of others.entries()) console.log(dot(query, vector).toFixed(3), input[i + 1])
console.log(`(${usage.total_tokens} tokens, ${query.length} numbers each)`)
