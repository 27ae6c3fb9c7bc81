import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type OpenAI from "openai"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import type { Part } from "../../core/ports/model.ts"
import { usageOf } from "../../core/usage.ts"
import { makeOutbound } from "../../runtime/services/outbound/outbound.ts"
import { plainImage, writtenPng } from "../../testing/images.ts"
import { callPathFixture, fakeChatModel } from "../../testing/index.ts"
import { imageHeader } from "./image-file.ts"
import { maxImages } from "./images.ts"
import { usageNow } from "./reply-encoding.ts"
import { chatEndpoint } from "./testing/chat-endpoint.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"

const image = () => plainImage(7, 5, "red")
const [png, jpeg, webp, lossless, gif] = await Promise.all([
  image().png().toBuffer(),
  image().withMetadata().jpeg().toBuffer(),
  image().webp().toBuffer(),
  image().webp({ lossless: true }).toBuffer(),
  image().gif().toBuffer(),
])
const long = Buffer.concat([png, Buffer.alloc(21 * 2 ** 20)])

/** What is at a path: a status and a body. */
const pages: Readonly<Record<string, readonly [status: number, body: Buffer]>> = {
  "/a.png": [200, png],
  "/gone.png": [404, png],
  "/moved.png": [302, png],
  "/page.html": [200, Buffer.from("<html>")],
  "/long.png": [200, long],
}
let pictures: Server
let host: string
let fixture: ClientFixture
beforeAll(async () => {
  pictures = createServer((request, reply) => {
    const [status, body] = pages[request.url ?? ""] ?? [500, png]
    reply.writeHead(status, { location: "https://example.com/" }).end(body)
  }).listen(0, "127.0.0.1")
  await once(pictures, "listening")
  host = `127.0.0.1:${(pictures.address() as AddressInfo).port}`
})
afterEach(() => fixture?.deps.close())
afterAll(() => pictures.close())

const open = async (modalities: readonly string[] = ["text", "image"]) => {
  fixture = await openClient({ entry: { modalities } }, undefined, makeOutbound([host]))
  return fixture.client
}

const dataUri = (bytes: Buffer, type = "image/png") =>
  `data:${type};base64,${bytes.toString("base64")}`
const block = (url: string): OpenAI.ChatCompletionContentPart => ({
  type: "image_url",
  image_url: { url },
})
const asked = (...content: OpenAI.ChatCompletionContentPart[]) => ({
  model: "svc-lyt",
  messages: [
    { role: "user" as const, content: [{ type: "text" as const, text: "a" }, ...content] },
  ],
})

it("images reach the model in their places, from data URIs and addresses", async () => {
  const client = await open()
  const text = { type: "text", text: "Which?" } as const
  const remote = `http://${host}/a.png`
  const cached = { ...block(dataUri(gif, "image/gif")), cache_control: { type: "ephemeral" } }
  await client.chat.completions.create(
    asked(block(dataUri(jpeg)), text, block(remote), cached as never),
  )
  const [run] = fixture.model.runs
  const parts = run!.request.messages[0]!.content.map((part) =>
    part.type === "media" ? { ...part, bytes: Buffer.from(part.bytes) } : part,
  )
  const media = (mediaType: string, bytes: Buffer): Part => ({ type: "media", mediaType, bytes })
  expect(parts).toEqual([
    { type: "text", text: "a" },
    media("image/jpeg", jpeg),
    { type: "text", text: "Which?" },
    media("image/png", png),
    { ...media("image/gif", gif), cacheBreakpoint: true },
  ])
})

it("how closely an image is to be looked at reaches the model, if it was said", async () => {
  const client = await open()
  const looked = (detail: "low" | "high" | "auto") =>
    ({ type: "image_url", image_url: { url: dataUri(png), detail } }) as const
  await client.chat.completions.create(asked(looked("low"), looked("high"), looked("auto")))
  const [run] = fixture.model.runs
  const parts = run!.request.messages[0]!.content.slice(1)
  expect(parts.map((part) => ("detail" in part ? part.detail : undefined))).toEqual([
    "low",
    "high",
    undefined,
  ])
})

it("a model that takes text only refuses the first image by its path", async () => {
  const client = await open(["text"])
  await expect(client.chat.completions.create(asked(block("x")))).rejects.toMatchObject({
    status: 400,
    code: "unsupported_parameter",
    param: "messages[0].content[1].image_url",
    message: expect.stringContaining("the model 'svc-lyt' takes text only, not images"),
  })
  expect(fixture.model.runs).toEqual([])
})

const wrong: readonly (readonly [what: string, url: () => string, message: RegExp])[] = [
  ["another type", () => dataUri(png, "image/svg+xml"), /must be a data URI of image\/png/],
  ["no data URI", () => png.toString("base64"), /must be a data URI/],
  ["no base64", () => `${dataUri(png)}!`, /not valid base64/],
  ["other bytes", () => dataUri(Buffer.from("%PDF-1.7")), /no PNG, JPEG, WebP or GIF/],
  ["nothing", () => "data:image/png;base64,", /no PNG, JPEG/],
  ["900 million pixels", () => dataUri(writtenPng(30_000, 30_000, Buffer.alloc(9))), /30000 x/],
  ["over 20 MB", () => dataUri(long), /at most 20 MB/],
  ["over 20 MB behind an address", () => `http://${host}/long.png`, /at most 20 MB/],
  ["an address that is gone", () => `http://${host}/gone.png`, /answered 404/],
  ["an address that has moved", () => `http://${host}/moved.png`, /answered 302, and redirects/],
  ["a page", () => `http://${host}/page.html`, /no PNG, JPEG/],
  ["a private address", () => "https://10.0.0.1/a.png", /could not be fetched/],
  ["the machine itself", () => "https://127.0.0.1:1/a.png", /could not be fetched/],
  ["an address without TLS", () => "http://example.com/a.png", /could not be fetched/],
  ["a name that is not there", () => "https://nothing.invalid/a.png", /could not be fetched/],
]

it.each(wrong)("is refused, and nothing is charged: %s", async (_, url, message) => {
  const model = fakeChatModel({ entry: { modalities: ["text", "image"] } })
  const calls = callPathFixture([model])
  const endpoint = chatEndpoint({ ...calls, outbound: makeOutbound([host]) })
  const { status, json } = await calls.ask(
    endpoint,
    asked(block(dataUri(png)), block(url())) as never,
  )
  expect(json).toMatchObject({
    code: "invalid_request_error",
    param: "messages[0].content[2].image_url.url",
    message: expect.stringMatching(message),
  })
  expect([status, model.runs.length]).toEqual([400, 0])
  expect(calls.billing.calls).toEqual([])
})

it("so are too many", async () => {
  const client = await open()
  const many = Array.from({ length: maxImages + 1 }, () => block(dataUri(png)))
  await expect(client.chat.completions.create(asked(...many))).rejects.toMatchObject({
    status: 400,
    param: `messages[0].content[${maxImages + 1}].image_url`,
    message: expect.stringContaining(`may have ${maxImages} images`),
  })
})

it("sizes are read from headers, whatever is damaged behind them", () => {
  for (const [mediaType, bytes] of [
    ["image/png", png],
    ["image/jpeg", jpeg],
    ["image/webp", webp],
    ["image/webp", lossless],
    ["image/gif", gif],
  ] as const) {
    expect(imageHeader(bytes)).toEqual({ mediaType, size: { width: 7, height: 5 } })
    for (let end = 0; end < bytes.length; end++) imageHeader(bytes.subarray(0, end))
  }
  expect(imageHeader(Buffer.from("\xff\xd8\xff\xff\xff\xff", "latin1"))).toEqual({
    mediaType: "image/jpeg",
  })
})

it("usage says how many of the prompt's tokens are of images", () => {
  const used = () => ({ m: usageOf({ inputTokens: 90, imageTokens: 64 }) })
  expect(usageNow({ used, cost: () => 0n }, "m").prompt_tokens_details).toEqual({
    cached_tokens: 0,
    image_tokens: 64,
  })
})
