// Which picture shows it? Texts and images are vectors of one space, where the model has a vision tower.
import { readFileSync } from "node:fs"
import OpenAI from "openai"
import { connection } from "./connection.js"

const [text = "a red apple", ...files] = process.argv.slice(2)
if (files.length === 0) throw new Error('use: images.js "a red apple" FILE...')
const client = new OpenAI(connection())
const images = files.map((file) => ({ type: "image", image: readFileSync(file, "base64") }))
const { data, usage } = await client.embeddings.create({
  model: "svc-embed",
  input: [text, ...images],
})
const [query, ...others] = data.map((item) => item.embedding)
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0)
const ranked = files
  .map((file, i) => ({ file, score: dot(query, others[i]) }))
  .sort((a, b) => b.score - a.score)
for (const { file, score } of ranked) console.log(score.toFixed(3), file)
console.log(`(${usage.image_count} images, ${usage.total_tokens} tokens, Rp${usage.cost_idr})`)
