/*
 * Asks a server about the pictures of questions_of.py: `node ask.mjs URL KEY FOLDER [MODEL]`. Prints how many answers
 * are right to the word, by kind.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI from "openai"

const [baseURL, apiKey, folder, model = "svc-lyt"] = process.argv.slice(2)
const client = new OpenAI({ baseURL, apiKey, maxRetries: 8 })
const asked = JSON.parse(readFileSync(join(folder, "asked.json"), "utf8"))

const block = (file) => {
  const data = readFileSync(join(folder, file)).toString("base64")
  return file.endsWith(".mp4")
    ? { type: "video_url", video_url: { url: `data:video/mp4;base64,${data}` } }
    : { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }
}

const said = async ({ file, question }) => {
  const reply = await client.chat.completions.create({
    model,
    temperature: 0,
    max_tokens: 24,
    messages: [{ role: "user", content: [block(file), { type: "text", text: question }] }],
  })
  return reply.choices[0].message.content
}

const kinds = new Map()
const wrong = []
let at = 0
const worker = async () => {
  while (at < asked.length) {
    const one = asked[at++]
    const text = await said(one)
    const kind = kinds.get(one.kind) ?? { right: 0, all: 0 }
    kinds.set(one.kind, {
      right: kind.right + Number(text === one.answer),
      all: kind.all + 1,
    })
    if (text !== one.answer) wrong.push(`${one.file} ${one.question} ${one.answer} > ${text}`)
  }
}
await Promise.all(Array.from({ length: 4 }, worker))
console.log(wrong.slice(0, 40).join("\n"))
for (const [kind, { right, all }] of [...kinds].sort())
  console.log(kind, right, "of", all, `${((100 * right) / all).toFixed(1)} %`)
const right = asked.length - wrong.length
console.log("all", right, "of", asked.length, `${((100 * right) / asked.length).toFixed(1)} %`)
