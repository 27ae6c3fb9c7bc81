import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import { whenReady } from "./load.ts"

const server = createServer()
afterEach(() => void server.close())

/** Replies with these one after the other: a status, and the body's text. */
const serve = async (replies: readonly (readonly [number, string])[]) => {
  let next = 0
  server.removeAllListeners("request")
  server.on("request", (_, reply) => {
    const [status, body] = replies[next++]!
    reply.writeHead(status).end(body)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, key: "k", model: "m", maxTokens: 64, prompt: "?" }
}
const refusal = (message: string) => JSON.stringify({ error: { message } })
const answer = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } })}\n\n`

it("waits while the model is loading, and says so", async () => {
  const target = await serve([
    [503, refusal("The model 'm' is still loading.")],
    [200, answer],
  ])
  const waits: string[] = []
  const sample = await whenReady(target, (reason) => void waits.push(reason))
  expect(waits).toEqual(["503 The model 'm' is still loading."])
  expect(sample).toMatchObject({ promptTokens: 3, tokens: 1 })
})

it("does not wait for what will stay refused", async () => {
  const target = await serve([[401, refusal("The API key is invalid.")]])
  await expect(whenReady(target, () => {})).rejects.toThrow("401 The API key is invalid.")
})
