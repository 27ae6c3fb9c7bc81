import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"

/** What a scripted server does with one request. */
export type Script = (res: ServerResponse, asked: Asked) => unknown

export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  /** As JSON; of a form its bytes as `form`. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  readonly body: any
  /** Resolves when the connection is closed. */
  readonly left: Promise<unknown>
}

/** A chunk of a chat stream, with a choice of this delta. */
export const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
export const say = (content: string): object => chunk({ content })
export const usageOf = (prompt: unknown, completion: unknown): object => ({
  ...chunk({}),
  choices: [],
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: 0 },
})
export const event = (data: object | string): string =>
  `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`
export const begin = (res: ServerResponse, more: object = {}): ServerResponse =>
  res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...more })

/** A whole stream of these chunks. */
export const stream =
  (...chunks: readonly (object | string)[]): Script =>
  (res) =>
    begin(res).end(chunks.map(event).join(""))
export const json =
  (body: unknown, status = 200, headers: object = {}): Script =>
  (res) =>
    res
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body))

/** A good answer of two tokens to a prompt of five. */
export const good = stream(say("Hel"), say("lo"), chunk({}, "stop"), usageOf(5, 2), "[DONE]")

export interface ScriptedUpstream {
  readonly url: string
  readonly host: string
  /** Requests other than those for the list of models. */
  readonly asked: readonly Asked[]
  /** What it does with the next request, and the next ones; the last stays. */
  play(...scripts: readonly Script[]): void
  /** What it does when it is asked for its models; by default it has `m`. */
  list(script: Script): void
  /** What it says of itself as llama.cpp does; by default it knows no such route. */
  describe(script: Script): void
  close(): Promise<void>
}

/** A server that answers as it is scripted, well or badly. */
export const openScripted = async (): Promise<ScriptedUpstream> => {
  const asked: Asked[] = []
  let scripts: readonly Script[] = [good]
  let properties: Script = json({ error: { message: "not found" } }, 404)
  let models: Script = json({ object: "list", data: [{ id: "m", object: "model" }] })
  const server = createServer(async (req, res) => {
    const left = once(res, "close")
    const bytes = await buffer(req)
    const path = req.url ?? ""
    const isForm = req.headers["content-type"]?.startsWith("multipart/") === true
    const sent = isForm
      ? { form: bytes }
      : bytes.length > 0
        ? JSON.parse(bytes.toString())
        : undefined
    const seen = { path, headers: req.headers, body: sent, left }
    if (path.endsWith("/models") || path.endsWith("/info")) return models(res, seen)
    if (path.endsWith("/props")) return properties(res, seen)
    asked.push(seen)
    const [script, ...rest] = scripts
    if (rest.length > 0) scripts = rest
    await script?.(res, seen)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `http://${host}`,
    host,
    asked,
    play: (...next) => {
      scripts = next
      asked.length = 0
    },
    list: (script) => {
      models = script
    },
    describe: (script) => {
      properties = script
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}
