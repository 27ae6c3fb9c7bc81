// A question about pictures, files or https addresses: node examples/clients/vision.js "What is it?" a.png https://example.com/b.jpg
import { readFileSync } from "node:fs"
import { extname } from "node:path"
import OpenAI from "openai"
import { connection } from "./connection.js"

const [question, ...pictures] = process.argv.slice(2)
if (!question || pictures.length === 0) {
  console.error('usage: node examples/clients/vision.js "What is it?" PICTURE...')
  process.exit(1)
}

/** A file goes into the request; an address is fetched by the server. */
const urlOf = (picture) => {
  if (/^https:/.test(picture)) return picture
  const type = extname(picture).slice(1).toLowerCase().replace(/^jpg$/, "jpeg")
  return `data:image/${type};base64,${readFileSync(picture).toString("base64")}`
}

const client = new OpenAI(connection())
const { RAKIT_MODEL: model = "svc-omni" } = process.env
const stream = await client.chat.completions.create({
  model,
  max_tokens: 200,
  stream: true,
  stream_options: { include_usage: true },
  messages: [
    {
      role: "user",
      content: [
        ...pictures.map((picture) => ({ type: "image_url", image_url: { url: urlOf(picture) } })),
        { type: "text", text: question },
      ],
    },
  ],
})
for await (const { choices, usage } of stream) {
  process.stdout.write(choices[0]?.delta.content ?? "")
  if (!usage) continue
  const { image_tokens = 0 } = usage.prompt_tokens_details ?? {}
  console.log(
    `\n(${usage.prompt_tokens} tokens, ${image_tokens} of them of images, Rp${usage.cost_idr})`,
  )
}
