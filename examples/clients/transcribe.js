// What is said in an audio file: as it is heard, or as captions. Needs a model of the task transcribe.
import { createReadStream } from "node:fs"
import OpenAI from "openai"
import { connection } from "./connection.js"

const [path, response_format = "json", model = "svc-dengar"] = process.argv.slice(2)
if (!path) throw new Error("use: transcribe.js FILE.wav [json|text|srt|vtt|verbose_json] [MODEL]")
const client = new OpenAI(connection())
const request = { file: createReadStream(path), model, response_format }
if (response_format === "json") {
  for await (const event of await client.audio.transcriptions.create({
    ...request,
    stream: true,
  })) {
    if (event.type === "transcript.text.delta") process.stdout.write(event.delta)
    else console.log(`\n(${event.usage.seconds} s, Rp${event.usage.cost_idr})`)
  }
} else {
  const answer = await client.audio.transcriptions.create(request)
  console.log(typeof answer === "string" ? answer : JSON.stringify(answer, null, 2))
}
