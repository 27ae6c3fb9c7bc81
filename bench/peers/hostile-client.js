// The attacker in a process of its own: keeps so many hostile requests in flight for so long.
// job: { url, apiKey, names, connections, ms, pauseMs } -> { answers: { "413": 12, "cut": 3, ... } }
import { connect } from "node:net"
import { gzipSync } from "node:zlib"

const megabyte = 2 ** 20
const many = (count, one) => Array.from({ length: count }, (_, i) => one(i)).join()
const chat = (content, more = "") =>
  `{"model":"svc-lyt","max_tokens":1,"messages":[{"role":"user","content":${content}}]${more}}`
const words = (bytes) => JSON.stringify("kata demi kata, ".repeat(bytes / 16))
const keys = (count) => chat('"x"', `,"z":{${many(count, (i) => `"k${i}":1`)}}`)
const tools = (properties) =>
  chat(
    '"x"',
    `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{${many(properties, (i) => `"p${i}":{"type":"string"}`)}}}}}]`,
  )
const blocks = (messages, each) =>
  `{"model":"svc-lyt","max_tokens":1,"messages":[${many(messages, () => `{"role":"user","content":[${many(each, () => '{"type":"text","text":"a"}')}]}`)}]}`
const form = (bytes) => {
  const head =
    '--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nknowledge\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
  return Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(bytes, "\r\n--"),
    Buffer.from("\r\n--x--\r\n"),
  ])
}
const image = (bytes) => `data:image/png;base64,${"iVBORw0K".repeat(bytes / 8)}`

const json = (path, make, more = {}) => ({ path, make: () => Buffer.from(make()), ...more })
const chats = (make, more) => json("/v1/chat/completions", make, more)
const packed = { encoding: "gzip" }

/** What is sent. `isEndless`: never to its end, a byte now and then. */
const attacks = {
  "600,000 keys": chats(() => keys(600_000)),
  "600,000 keys, gzip": chats(() => keys(600_000), packed),
  "39,000 keys": chats(() => keys(39_000)),
  "250,000 tool properties": chats(() => tools(250_000)),
  "9,900 tool properties": chats(() => tools(9_900)),
  "16,000 blocks of text": chats(() => blocks(40, 400)),
  "600,000 token ids": json(
    "/v1/embeddings",
    () => `{"model":"svc-embed","input":[${many(600_000, () => "1")}]}`,
  ),
  "48 MB of words": chats(() => chat(words(48 * megabyte))),
  "7.9 MB of words": chats(() => chat(words(7.9 * megabyte))),
  "1 MB of words": chats(() => chat(words(megabyte))),
  "49 MB of words, not announced": chats(() => chat(words(49 * megabyte)), { chunked: true }),
  "45 MB of spaces in 45 kB": chats(() => chat(JSON.stringify(" ".repeat(45 * megabyte))), packed),
  "24 MB of image": json("/v1/embeddings", () =>
    JSON.stringify({ model: "svc-embed", input: [{ type: "image", image: image(24 * megabyte) }] }),
  ),
  "49 MB form": {
    path: "/v1/files",
    make: () => form(49 * megabyte),
    type: "multipart/form-data; boundary=x",
  },
  "40 MB, a byte a second": chats(() => chat(words(40 * megabyte)), { isEndless: true }),
  "7 MB, a byte a second": chats(() => chat(words(7 * megabyte)), { isEndless: true }),
}

const made = new Map()
const bodyOf = (name) => {
  const { make, encoding } = attacks[name]
  if (!made.has(name)) made.set(name, encoding ? gzipSync(make()) : make())
  return made.get(name)
}

const headOf = ({ path, encoding, chunked, type = "application/json" }, apiKey, length) =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: x",
    `Authorization: Bearer ${apiKey}`,
    `Content-Type: ${type}`,
    ...(encoding ? [`Content-Encoding: ${encoding}`] : []),
    chunked ? "Transfer-Encoding: chunked" : `Content-Length: ${length}`,
    "\r\n",
  ].join("\r\n")

/** One request on a connection of its own; resolves with the status, or `cut`. */
const send = ({ host, port }, apiKey, name, untilMs) =>
  new Promise((resolve) => {
    const attack = attacks[name]
    const body = bodyOf(name)
    const socket = connect({ host, port })
    let answer = ""
    let drip
    socket.on("data", (chunk) => {
      answer += answer.length < 100 ? chunk.toString("latin1") : ""
      if (/^HTTP\/1.1 [2-5]/.test(answer)) socket.destroy()
    })
    socket.on("error", () => {})
    const timer = setTimeout(() => socket.destroy(), Math.max(0, untilMs - performance.now()))
    socket.on("close", () => {
      clearTimeout(timer)
      clearInterval(drip)
      resolve(
        /^HTTP\/1.1 (\d+)/.exec(answer)?.[1] ?? (performance.now() < untilMs ? "cut" : "open"),
      )
    })
    socket.write(headOf(attack, apiKey, body.length))
    if (attack.isEndless) {
      socket.write(body.subarray(0, 200_000))
      drip = setInterval(() => socket.write("x"), 1_000)
    } else if (attack.chunked) {
      socket.write(`${body.length.toString(16)}\r\n`)
      socket.write(body)
      socket.write("\r\n0\r\n\r\n")
    } else socket.write(body)
  })

const run = async ({ url, apiKey, names, connections, ms, pauseMs = 20 }) => {
  const { hostname: host, port } = new URL(url)
  for (const name of names) bodyOf(name)
  process.send({ begun: true })
  const untilMs = performance.now() + ms
  const answers = {}
  const attacker = async (name) => {
    while (performance.now() < untilMs) {
      const status = await send({ host, port: Number(port) }, apiKey, name, untilMs)
      answers[status] = (answers[status] ?? 0) + 1
      // a refused attacker that comes back at once would measure the cost of a connection
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  await Promise.all(
    Array.from({ length: connections }, (_, i) => attacker(names[i % names.length])),
  )
  return { answers }
}

process.on("message", (job) => {
  if (job === "names") return process.send({ names: Object.keys(attacks) })
  run(job).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error) }),
  )
})
process.once("disconnect", () => process.exit(0))
