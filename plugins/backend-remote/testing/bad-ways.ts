import { gzipSync } from "node:zlib"
import { badAnswers } from "./bad-answers.ts"
import {
  type BadWay,
  end,
  estimated,
  failed,
  hello,
  midway,
  usage,
  well,
  whole,
} from "./bad-way.ts"
import { begin, event, good, json, type Script, say, stream } from "./scripted-upstream.ts"

const pieces =
  (...all: readonly (string | Buffer)[]): Script =>
  async (res) => {
    begin(res)
    for (const piece of all) {
      res.write(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
    res.end()
  }

const euro = Buffer.from(event(say("€uro")))
const split = euro.indexOf(0x82)

/** Ways of a server that answers, or breaks off, on the level of HTTP. */
const transport: readonly BadWay[] = [
  {
    name: "slow headers",
    isSlow: true,
    scripts: [() => {}],
    sees: { error: "backend_timeout", charged: [0, 0], asked: 3 },
  },
  {
    name: "slow body",
    isSlow: true,
    scripts: [(res) => begin(res).write(event(say("Hello")))],
    sees: { text: "Hello", error: "backend_timeout", charged: [0, 0], asked: 1 },
  },
  {
    name: "cut in the middle of the stream",
    scripts: [(res) => void begin(res).write(event(say("Hello")), () => res.destroy())],
    sees: midway,
  },
  {
    name: "cut before the first byte",
    scripts: [(res) => void res.destroy()],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "cut before the first byte, then well",
    scripts: [(res) => void res.destroy(), good],
    sees: { ...well, asked: 2 },
  },
  { name: "wrong JSON", scripts: [stream("{not json", "[DONE]")], sees: { ...failed, asked: 3 } },
  {
    name: "HTML with status 200",
    scripts: [(res) => res.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>")],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "a storm of 429 with Retry-After",
    scripts: [json({ error: { message: "slow down" } }, 429, { "retry-after": "7" })],
    sees: { error: "backend_busy", charged: [0, 0], asked: 1 },
  },
  {
    name: "status 500",
    scripts: [json({ error: { message: "boom" } }, 500)],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "status 503, then well",
    scripts: [json("overloaded", 503), good],
    sees: { ...well, asked: 2 },
  },
  {
    name: "status 400",
    scripts: [json({ error: { message: "temperature is odd", param: "temperature" } }, 400)],
    sees: { error: "invalid_request_error", charged: [0, 0], asked: 1 },
  },
  {
    name: "a redirect",
    scripts: [(res) => res.writeHead(302, { location: "http://127.0.0.1:1/elsewhere" }).end()],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "gzip that nobody asked for",
    scripts: [(res) => begin(res, { "content-encoding": "gzip" }).end(gzipSync(whole))],
    sees: well,
  },
  {
    name: "broken gzip",
    scripts: [(res) => begin(res, { "content-encoding": "gzip" }).end(whole)],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "a giant header",
    scripts: [(res) => begin(res, { "x-large": "a".repeat(40_000) }).end(whole)],
    sees: { ...failed, asked: 3 },
  },
]

/** Ways of a stream whose lines are odd, or wrong. */
const lines: readonly BadWay[] = [
  {
    name: "half lines",
    scripts: [pieces(...(whole.match(/[\s\S]{1,7}/g) ?? []))],
    sees: well,
  },
  {
    name: "a character in two pieces",
    scripts: [pieces(euro.subarray(0, split), euro.subarray(split), event(end), event(usage))],
    sees: { ...well, text: "€uro" },
  },
  { name: "CRLF", scripts: [pieces(whole.replaceAll("\n", "\r\n"))], sees: well },
  {
    name: "comments",
    scripts: [pieces(`: ping\n\n${whole.replaceAll("data:", ": still here\nevent: x\ndata:")}`)],
    sees: well,
  },
  {
    name: "a giant chunk",
    scripts: [pieces(event(say("a".repeat(9 * 2 ** 20))), whole)],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "no [DONE]",
    scripts: [stream(...hello, end, usage)],
    sees: well,
  },
  {
    name: "[DONE] without a finish",
    scripts: [stream(say("Hello"), "[DONE]")],
    sees: midway,
  },
  { name: "no finish", scripts: [stream(say("Hello"))], sees: midway },
  { name: "nothing at all", scripts: [stream("[DONE]")], sees: { ...failed, asked: 3 } },
  {
    name: "an error object in the middle",
    scripts: [
      (res) => {
        begin(res).write(event(say("Hello")))
        setTimeout(() => res.end(event({ error: { message: "out of memory" } })), 50)
      },
    ],
    sees: midway,
  },
  {
    name: "an error object at first, then well",
    scripts: [stream({ error: { message: "out of memory" } }), good],
    sees: { ...well, asked: 2 },
  },
  {
    name: "a stream that never ends",
    scripts: [
      (res, { left }) => {
        begin(res)
        let isOpen = true
        left.then(() => {
          isOpen = false
        })
        const more = () => {
          if (isOpen) res.write(event(say("la ")), () => setImmediate(more))
        }
        more()
      },
    ],
    // 64 tokens were asked for; some pieces more are waited for
    sees: { finish: "length", charged: [estimated, 64], asked: 1 },
  },
]

export const badWays: readonly BadWay[] = [...transport, ...lines, ...badAnswers]
