// A picture, the same in another style, a change of it, and one that is seen while it is made.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { connection } from "../clients/connection.js"

const [prompt = "A red apple on a table", folder = "pictures"] = process.argv.slice(2)
const client = new OpenAI(connection())
mkdirSync(folder, { recursive: true })
let cost = 0
const save = (name, base64, usage) => {
  const file = join(folder, `${name}.png`)
  writeFileSync(file, base64, "base64")
  cost += usage?.cost_idr ?? 0
  console.log(file)
}
// the same seed, so that only the LoRA and the edit make a difference
const common = { model: "svc-iris", seed: 7 }

const plain = await client.images.generate({ ...common, prompt, size: "512x512" })
save("plain", plain.data[0].b64_json, plain.usage)

const dark = await client.images.generate({
  ...common,
  prompt,
  size: "512x512",
  lora: "dark",
  lora_strength: 0.8,
})
save("dark", dark.data[0].b64_json, dark.usage)

const image = await toFile(Buffer.from(plain.data[0].b64_json, "base64"), "plain.png", {
  type: "image/png",
})
const edited = await client.images.edit({
  ...common,
  image,
  prompt: "Make it blue",
  strength: 0.9,
})
save("edited", edited.data[0].b64_json, edited.usage)

const stream = await client.images.generate({
  ...common,
  prompt,
  stream: true,
  partial_images: 2,
  num_steps: 8,
})
for await (const event of stream) {
  const isLast = event.type === "image_generation.completed"
  save(isLast ? "streamed" : `preview-${event.partial_image_index}`, event.b64_json, event.usage)
}
console.log(`(Rp${cost})`)
