// One signed call when a batch is done. The server must be let through to this receiver, which is neither public nor https:
// RAKIT_WEBHOOK_ALLOW_HOSTS=localhost:9000 npm start
import { createHmac, timingSafeEqual } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import OpenAI, { toFile } from "openai"
import { connection } from "./connection.js"

const client = new OpenAI(connection())
const port = Number(process.argv[2] ?? 9000)

/** `Svc-Signature: t=<seconds>,v1=<hex>`, with a second v1 for a day after the secret was changed. stripe's verifier reads it, too. */
const isSigned = (body, header, secret) => {
  const parts = header.split(",").map((part) => part.split("="))
  const seconds = parts.find(([name]) => name === "t")?.[1]
  const wanted = createHmac("sha256", secret).update(`${seconds}.`).update(body).digest()
  const isOurs = ([name, hex = ""]) => {
    const given = Buffer.from(hex, "hex")
    return name === "v1" && given.length === wanted.length && timingSafeEqual(given, wanted)
  }
  return Math.abs(Date.now() / 1000 - Number(seconds)) < 300 && parts.some(isOurs)
}

let tell
const delivered = new Promise((resolve) => {
  tell = resolve
})
const receiver = createServer(async (request, response) => {
  const pieces = await request.toArray()
  const body = Buffer.concat(pieces) // the bytes as they came: only they are signed
  const isGood = isSigned(body, request.headers["svc-signature"] ?? "", webhook.secret)
  response.writeHead(isGood ? 204 : 400).end() // an answer within 10 s; anything but 2xx is tried again later
  if (isGood) tell(JSON.parse(body))
})
await once(receiver.listen(port), "listening")

const url = `http://localhost:${port}/rakit`
const webhook = await client.post("/webhooks", {
  body: { url, events: ["batch.completed", "batch.failed"] },
})
try {
  const line = {
    custom_id: "one",
    method: "POST",
    url: "/v1/embeddings",
    body: { model: "svc-embed", input: "A text." },
  }
  const file = await client.files.create({
    file: await toFile(Buffer.from(JSON.stringify(line)), "one.jsonl"),
    purpose: "batch",
  })
  const batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: line.url,
    completion_window: "24h",
  })
  console.log(`${batch.id} is ${batch.status}; waiting for the call`)
  // a call may come twice, as when an answer was lost: data.id tells
  const { event, data } = await delivered
  console.log(`${event}: ${data.id}, ${data.status}`)
} finally {
  await client.delete(`/webhooks/${webhook.id}`)
  receiver.close()
}
