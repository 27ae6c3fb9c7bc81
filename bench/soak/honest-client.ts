// A process of its own, so that its times are not those of the hostile clients' work: calls at
// fixed rates, whatever the replies do. Parent: { url, key } starts it, "take" returns what was
// measured since the last time, "finish" waits for the calls in flight.
import { setTimeout } from "node:timers/promises"
import { makeCaller } from "./http-call.ts"
import type { HonestSamples, Kind } from "./samples.ts"

let samples: HonestSamples = { times: [], failures: {} }
let isStopped = false
const inFlight = new Set<Promise<void>>()

const fail = (kind: Kind, why: string) => {
  const name = `${kind}: ${why}`
  samples.failures[name] = (samples.failures[name] ?? 0) + 1
}

const sentences = [
  "Selamat pagi, apa kabar?",
  "The capital of France is",
  "Summarize: water boils at 100 degrees.",
]

const open = (url: string, key: string) => {
  const call = makeCaller(url, 64)
  const authorized = { authorization: `Bearer ${key}` }
  const json = { ...authorized, "content-type": "application/json" }
  const post = (path: string, body: object) =>
    call({ method: "POST", path, headers: json, body: JSON.stringify(body) })
  const get = (path: string) => call({ method: "GET", path, headers: authorized })
  const note = (kind: Kind, ms: number) => samples.times.push([kind, ms])
  const good = (kind: Kind, { status, text }: { status: number; text: string }): boolean => {
    if (status >= 200 && status < 300) return true
    fail(kind, `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ""}`)
    return false
  }
  const chat = (count: number, more: object) =>
    post("/v1/chat/completions", {
      model: "svc-lyt",
      messages: [{ role: "user", content: sentences[count % sentences.length] }],
      ...more,
    })
  const upload = (content: string) => {
    const part = (name: string, value: string) =>
      `--soak\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n`
    return call({
      method: "POST",
      path: "/v1/files",
      headers: { ...authorized, "content-type": "multipart/form-data; boundary=soak" },
      body: `${part('"purpose"', "batch_input")}${part('"file"; filename="a.jsonl"', content)}--soak--\r\n`,
    })
  }
  return {
    health: async () => {
      const reply = await get("/healthz")
      if (good("health", reply)) note("health", reply.wholeMs)
    },
    stream: async (count: number) => {
      const reply = await chat(count, { stream: true })
      if (!good("stream", reply)) return
      if (!reply.text.trimEnd().endsWith("data: [DONE]")) return fail("stream", "cut")
      note("first token", reply.firstMs)
      note("stream", reply.wholeMs)
    },
    chat: async (count: number) => {
      const reply = await chat(count, {})
      if (good("chat", reply)) note("chat", reply.wholeMs)
    },
    embeddings: async () => {
      const reply = await post("/v1/embeddings", { model: "svc-embed", input: sentences })
      if (good("embeddings", reply)) note("embeddings", reply.wholeMs)
    },
    file: async () => {
      const startedMs = performance.now()
      const made = await upload("x".repeat(20_000))
      if (!good("file", made)) return
      const { id } = JSON.parse(made.text) as { id: string }
      const content = await get(`/v1/files/${id}/content`)
      if (!good("file", content)) return
      if (content.text.length !== 20_000) return fail("file", "other bytes")
      const gone = await call({ method: "DELETE", path: `/v1/files/${id}`, headers: authorized })
      if (good("file", gone)) note("file", performance.now() - startedMs)
    },
    batch: async () => {
      const startedMs = performance.now()
      const body = { model: "svc-embed", input: "Selamat pagi" }
      const lines = Array.from({ length: 10 }, (_, i) =>
        JSON.stringify({ custom_id: `${i}`, method: "POST", url: "/v1/embeddings", body }),
      )
      const file = await upload(lines.join("\n"))
      if (!good("batch", file)) return
      const input_file_id = (JSON.parse(file.text) as { id: string }).id
      const made = await post("/v1/batches", { input_file_id, endpoint: "/v1/embeddings" })
      if (!good("batch", made)) return
      let batch = JSON.parse(made.text)
      while (batch.status === "validating" || batch.status === "in_progress") {
        await setTimeout(500)
        const reply = await get(`/v1/batches/${batch.id}`)
        if (!good("batch", reply)) return
        batch = JSON.parse(reply.text)
      }
      if (batch.request_counts.completed === 10) note("batch", performance.now() - startedMs)
      else fail("batch", `${batch.status} with ${batch.request_counts.completed} of 10 lines`)
    },
  }
}

type Calls = ReturnType<typeof open>
const perSecond: Readonly<Record<keyof Calls, number>> = {
  health: 10,
  stream: 4,
  chat: 2,
  embeddings: 2,
  file: 0.5,
  batch: 0.1,
}

const keepCalling = async (kind: keyof Calls, calls: Calls) => {
  const startedMs = performance.now()
  for (let count = 0; !isStopped; count++) {
    const dueMs = startedMs + (count * 1000) / perSecond[kind]
    await setTimeout(Math.max(0, dueMs - performance.now()))
    const one: Promise<void> = Promise.resolve(calls[kind](count))
      .catch((error) => fail(kind, `no answer (${(error as Error).message})`))
      .finally(() => inFlight.delete(one))
    inFlight.add(one)
  }
}

process.on("message", async (message: "take" | "finish" | { url: string; key: string }) => {
  if (typeof message === "object") {
    const calls = open(message.url, message.key)
    for (const kind of Object.keys(perSecond) as (keyof Calls)[]) void keepCalling(kind, calls)
    return
  }
  if (message === "finish") {
    isStopped = true
    await Promise.all(inFlight)
  }
  const taken = samples
  samples = { times: [], failures: {} }
  process.send?.(taken)
})
process.once("disconnect", () => process.exit(0))
