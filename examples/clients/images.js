// Which picture shows it? Texts and images are vectors of one space, where the model has a vision tower.
import { readFileSync } from "node:fs"
import OpenAI from "openai"
import { connection } from "./connection.js"

const [text = "a red apple", ...files] = process.argv.slice(2)
if (files.length === 0) throw new Error('use: images.js "a red apple" FILE...')
const client = new OpenAI(connection())
let cost = 0
const embed = async (input) => {
  const { data, usage } = await client.embeddings.create({ model: "svc-embed", input })
  cost += usage.cost_idr
  return data.map((item) => item.embedding)
}
const [query] = await embed([text])
const vectors = []
// a request takes at most 8 images
for (let at = 0; at < files.length; at += 8) {
  const some = files.slice(at, at + 8)
  const images = some.map((file) => ({ type: "image", image: readFileSync(file, "base64") }))
  vectors.push(...(await embed(images)))
}
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0)
const ranked = files
  .map((file, i) => ({ file, score: dot(query, vectors[i]) }))
  .sort((a, b) => b.score - a.score)
for (const { file, score } of ranked) console.log(score.toFixed(3), file)
console.log(`(${files.length} images, Rp${cost})`)
