import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"

/**
 * What a body alone can do is in peers/hostile-client.js; here are connections, schemas, and the
 * bodies that need company.
 */

/** Sends something nasty; resolves with the status, or with how it ended. */
export type Attack = (target: Target) => Promise<string>

export interface Target {
  readonly host: string
  readonly port: number
  readonly key: string
}

const giveUpMs = 60_000

const statusIn = (text: string) => /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]

/** Resolves with the status of the first reply on the socket, or `closed`, or `silent`. */
const replyOn = (socket: Socket, waitMs = giveUpMs): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    const end = (what: string) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(what)
    }
    const timer = globalThis.setTimeout(() => end("silent"), waitMs)
    socket.on("data", (piece: Buffer) => {
      text += piece.toString("latin1").slice(0, 100)
      const status = statusIn(text)
      if (status) end(status)
    })
    socket.on("error", () => {})
    socket.on("close", () => end(statusIn(text) ?? "closed"))
  })

const open = ({ host, port }: Target): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port }, () => resolve(socket))
    socket.once("error", reject)
  })

const head = (target: Target, path: string, more: readonly string[]) =>
  [
    `POST ${path} HTTP/1.1`,
    `Host: ${target.host}`,
    `Authorization: Bearer ${target.key}`,
    "Content-Type: application/json",
    ...more,
    "",
    "",
  ].join("\r\n")

const posting =
  (path: string, body: () => Uint8Array, more: readonly string[] = []): Attack =>
  async (target) => {
    const bytes = body()
    const socket = await open(target)
    const reply = replyOn(socket)
    socket.write(head(target, path, [`Content-Length: ${bytes.length}`, ...more]))
    socket.write(bytes)
    return reply
  }

/** Made when first used, and kept: the attacker should not spend its time on making them. */
const once = (make: () => string | Uint8Array): (() => Uint8Array) => {
  let made: Uint8Array | undefined
  return () => {
    made ??= Buffer.from(make())
    return made
  }
}

const chatPath = "/v1/chat/completions"
const chatWith = (more: string) =>
  `{"model":"svc-lyt","messages":[{"role":"user","content":"hi"}],${more}}`

const manyKeys = once(() => {
  const keys = Array.from({ length: 990_000 }, (_, i) => `"${i}":0`)
  return `{"z":{${keys.join(",")}}}`
})
const nearlyTooLarge = once(() => chatWith(`"user":"${"x".repeat(49 * 2 ** 20 - 200)}"`))
const deep = once(() => chatWith(`"z":${"[".repeat(400_000)}${"]".repeat(400_000)}`))
const complexSchema = once(() => {
  const branches = Array.from({ length: 400 }, (_, i) => ({
    type: "object",
    properties: {
      kind: { const: `k${i}` },
      text: { type: "string", pattern: "^(a|b|c)*x{1,90}$" },
    },
    required: ["kind"],
  }))
  return JSON.stringify({
    model: "svc-lyt",
    messages: [{ role: "user", content: "hi" }],
    max_tokens: 4,
    response_format: {
      type: "json_schema",
      json_schema: { name: "s", schema: { type: "array", items: { anyOf: branches } } },
    },
  })
})
const schemaToCheck = once(() => {
  const { response_format } = JSON.parse(Buffer.from(complexSchema()).toString())
  return JSON.stringify({ schema: response_format.json_schema.schema })
})

const manyAtOnce: Attack = async (target) => {
  const one = posting(chatPath, nearlyTooLarge)
  const replies = await Promise.all(Array.from({ length: 30 }, () => one(target)))
  return [...new Set(replies)].toSorted().join("/")
}

/** A hundred connections that send a byte of a header each second. */
const slowloris: Attack = async (target) => {
  const trickle = async () => {
    const socket = await open(target)
    const reply = replyOn(socket)
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${target.host}\r\nX-Slow: `)
    const timer = setInterval(() => socket.write("a"), 1_000)
    return reply.finally(() => clearInterval(timer))
  }
  const replies = await Promise.all(Array.from({ length: 100 }, trickle))
  return [...new Set(replies)].toSorted().join("/")
}

/** Connections that say nothing, and connections that are reset in the middle of a body. */
const halfOpen: Attack = async (target) => {
  const silent = await Promise.all(Array.from({ length: 50 }, () => open(target)))
  for (const socket of silent) socket.on("error", () => {})
  const reset = await Promise.all(Array.from({ length: 20 }, () => open(target)))
  for (const socket of reset) {
    socket.on("error", () => {})
    socket.write(head(target, chatPath, ["Content-Length: 1000000"]))
    socket.write(manyKeys().subarray(0, 300_000))
  }
  await setTimeout(1_000)
  for (const socket of reset) socket.resetAndDestroy()
  await setTimeout(5_000)
  for (const socket of silent) socket.destroy()
  return "left"
}

/** Streams whose reader never reads. */
const neverReads: Attack = async (target) => {
  const text = "word ".repeat(2_000)
  const body = JSON.stringify({
    model: "svc-omni", // a fake one, which writes as much as it reads
    messages: [{ role: "user", content: text }],
    stream: true,
  })
  const sockets = await Promise.all(Array.from({ length: 20 }, () => open(target)))
  for (const socket of sockets) {
    socket.pause()
    socket.on("error", () => {})
    socket.write(head(target, chatPath, [`Content-Length: ${Buffer.byteLength(body)}`]) + body)
  }
  await setTimeout(15_000)
  for (const socket of sockets) socket.resetAndDestroy()
  return "left"
}

const headerStorm: Attack = async (target) => {
  const lines = Array.from({ length: 900 }, (_, i) => `X-H${i}: ${i}`)
  return posting(chatPath, () => Buffer.from("{}"), ["Content-Length: 2", ...lines])(target)
}

const withoutKey: Attack = async (target) => {
  const one = posting(chatPath, () => manyKeys().subarray(0, 60_000))
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => one({ ...target, key: "svc_live_none" })),
  )
  return [...new Set(replies)].toSorted().join("/")
}

/** Each with how many run beside each other, and the pause of each between two. */
export const attacks: Readonly<
  Record<string, { readonly attack: Attack; readonly beside: number; readonly pauseMs: number }>
> = {
  "990,000 keys": { attack: posting(chatPath, manyKeys), beside: 2, pauseMs: 500 },
  "30 bodies of 49 MB at once": { attack: manyAtOnce, beside: 1, pauseMs: 10_000 },
  "400,000 arrays deep": { attack: posting(chatPath, deep), beside: 1, pauseMs: 500 },
  "990,000 keys to embeddings": {
    attack: posting("/v1/embeddings", manyKeys),
    beside: 1,
    pauseMs: 500,
  },
  "complex schema, chat": { attack: posting(chatPath, complexSchema), beside: 4, pauseMs: 200 },
  "complex schema, check": {
    attack: posting("/v1/schemas/check", schemaToCheck),
    beside: 4,
    pauseMs: 200,
  },
  "slow headers": { attack: slowloris, beside: 1, pauseMs: 1_000 },
  "silent and reset connections": { attack: halfOpen, beside: 1, pauseMs: 1_000 },
  "streams that nobody reads": { attack: neverReads, beside: 1, pauseMs: 1_000 },
  "900 headers": { attack: headerStorm, beside: 2, pauseMs: 100 },
  "20 without a key": { attack: withoutKey, beside: 1, pauseMs: 200 },
}
