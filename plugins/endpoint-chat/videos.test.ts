import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { parsePrice } from "../../core/pricing.ts"
import { usageOf } from "../../core/usage.ts"
import { makeOutbound } from "../../runtime/services/outbound/outbound.ts"
import { plainImage } from "../../testing/images.ts"
import { callPathFixture, fakeChatModel } from "../../testing/index.ts"
import { framesIn, picturesIn, withBlockPath } from "./media.ts"
import { usageNow } from "./reply-encoding.ts"
import { chatEndpoint } from "./testing/chat-endpoint.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"
import decodeVideo, { frameTimes } from "./video-frames-job.ts"
import { maxVideos } from "./videos.ts"

const clip = (name: string) => readFileSync(join(import.meta.dirname, "fixtures", name))
const types = { mp4: "mp4", webm: "webm", mov: "quicktime", mkv: "x-matroska" }
const uri = (bytes: Buffer, type = "mp4") => `data:video/${type};base64,${bytes.toString("base64")}`
const mp4 = clip("colours.mp4")

let server: Server
let host: string
let fixture: ClientFixture
beforeAll(async () => {
  server = createServer((request, reply) => {
    reply.writeHead(request.url === "/a.mp4" ? 200 : 404).end(mp4)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => fixture?.deps.close())
afterAll(() => server.close())

const open = async (modalities: readonly string[] = ["text", "image", "video"]) => {
  fixture = await openClient({ entry: { modalities } }, undefined, makeOutbound([host]))
  return fixture.client
}
const text = (content: string) => ({ type: "text", text: content })
const video = (url: string, more: object = {}) => ({
  type: "video_url",
  video_url: { url },
  ...more,
})
const asked = (...content: object[]) =>
  ({ model: "svc-lyt", messages: [{ role: "user", content }] }) as never

/** The strongest channel of the pixels of a frame that are not white: 0 red, 1 green, 2 blue. */
const colourOf = async (frame: Uint8Array): Promise<number> => {
  const { data } = await sharp(frame).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  const sums = [0, 0, 0]
  for (let at = 0; at < data.length; at += 3)
    if (Math.min(data[at]!, data[at + 1]!, data[at + 2]!) < 128)
      for (const channel of [0, 1, 2]) sums[channel]! += data[at + channel]!
  return sums.indexOf(Math.max(...sums))
}
const framesSeen = () =>
  fixture.model.runs[0]!.request.messages[0]!.content.flatMap((part) =>
    part.type === "media" ? [part] : [],
  )

it.each(Object.entries(types))(
  "frames of a %s reach the model in their order",
  async (end, type) => {
    const client = await open()
    await client.chat.completions.create(
      asked(text("First?"), video(uri(clip(`colours.${end}`), type)), text("Last?")),
    )
    const { content } = fixture.model.runs[0]!.request.messages[0]!
    expect(content.map((part) => part.type)).toEqual(["text", "media", "media", "media", "text"])
    const frames = framesSeen()
    expect(frames.map(({ mediaType }) => mediaType)).toEqual(Array(3).fill("image/png"))
    expect(await Promise.all(frames.map(({ bytes }) => colourOf(bytes)))).toEqual([0, 1, 2])
    const { width, height } = await sharp(frames[0]!.bytes).metadata()
    expect([width, height]).toEqual([96, 64])
  },
)

it("a video comes as an address, as base64 and with a breakpoint, too, and is counted", async () => {
  const client = await open()
  const cached = video(`http://${host}/a.mp4`, { cache_control: { type: "ephemeral" } })
  const data = mp4.toString("base64")
  const inline = [{ data, format: "mp4" }, { data: uri(mp4) }, { url: uri(mp4) }].map((given) => ({
    type: "input_video",
    input_video: given,
  }))
  const png = (await plainImage(7, 5, "red").png().toBuffer()).toString("base64")
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }
  const { usage } = await client.chat.completions.create(asked(cached, image, ...inline))
  const frames = framesSeen()
  expect(frames).toHaveLength(13)
  expect(frames.map(({ cacheBreakpoint }) => cacheBreakpoint === true)).toEqual(
    frames.map((_, at) => at === 2),
  )
  expect(usage?.prompt_tokens_details).toMatchObject({ video_frames: 12 })
})

it("a price of an image is that of a frame, and is held before the model runs", async () => {
  const price = parsePrice({ image: 5_000 })
  const model = fakeChatModel({ entry: { modalities: ["text", "image", "video"], price } as never })
  const calls = callPathFixture([model])
  const endpoint = chatEndpoint({ ...calls, outbound: makeOutbound([host]) })
  const body = { model: "svc-lyt", messages: [{ role: "user", content: [video(uri(mp4))] }] }
  expect(await calls.ask(endpoint, body)).toMatchObject({ status: 200 })
  const [call] = calls.billing.calls
  expect(call!.holdMicros).toBeGreaterThanOrEqual(15_000_000_000n)
  expect(call!.costMicros).toBe(15_000_000_000n)
})

it("a model without video refuses it by its path, and names itself", async () => {
  const client = await open(["text", "image"])
  await expect(client.chat.completions.create(asked(text("a"), video("x")))).rejects.toMatchObject({
    status: 400,
    code: "unsupported_parameter",
    param: "messages[0].content[1]",
    message: expect.stringContaining("the model 'svc-lyt' takes text and image only, not videos"),
  })
  expect(fixture.model.runs).toEqual([])
})

const zeros = Buffer.alloc(mp4.length - 600)
const wrong: readonly (readonly [what: string, block: () => object, message: RegExp])[] = [
  ["another type", () => video(uri(mp4, "x-msvideo")), /must be a data URI of video\/mp4/],
  ["no data URI", () => video("clip.mp4"), /must be a data URI/],
  ["no base64", () => video(`${uri(mp4)}!`), /not valid base64/],
  ["other bytes", () => video(uri(Buffer.from("%PDF-1.7"))), /is no MP4, MOV, WebM or Matroska/],
  ["nothing", () => video("data:video/mp4;base64,"), /is no MP4/],
  ["a video without an end", () => video(uri(mp4.subarray(0, 900))), /or is cut/],
  ["a video without an index", () => video(uri(mp4.subarray(0, 40))), /no MP4|cut|has no/],
  ["a cut WebM", () => video(uri(clip("colours.webm").subarray(0, 700), "webm")), /or is cut/],
  [
    "pictures that are too large",
    () => video(uri(clip("large.mp4"))),
    /2576 x 1616 pixels; at most/,
  ],
  ["sound alone", () => video(uri(clip("sound.mp4"))), /has no pictures/],
  ["pictures of zeros", () => video(uri(zeroed())), /cut or damaged/],
  ["an address that is gone", () => video(`http://${host}/gone.mp4`), /answered 404/],
]
/** The clip with the bytes of its frames set to 0. */
const zeroed = () => {
  const bytes = Buffer.from(mp4)
  const at = bytes.indexOf("mdat")
  const length = bytes.readUInt32BE(at - 4) - 8
  zeros.copy(bytes, at + 4, 0, Math.min(length, zeros.length))
  return bytes
}
it.each(wrong)("%s is refused with its path, and nothing runs", async (_, block, message) => {
  const client = await open()
  await expect(client.chat.completions.create(asked(text("a"), block()))).rejects.toMatchObject({
    status: 400,
    code: "invalid_request_error",
    param: "messages[0].content[1].video_url.url",
    message: expect.stringMatching(message),
  })
  expect(fixture.model.runs).toEqual([])
})

it("too many videos, and blocks with two sources or none, are refused", async () => {
  const client = await open()
  const refusal = (...content: object[]) =>
    expect(client.chat.completions.create(asked(...content))).rejects
  const many = Array.from({ length: maxVideos + 1 }, () => video("x"))
  await refusal(...many).toMatchObject({ status: 400, param: "messages[0].content[4]" })
  const input = (given: object) => ({ type: "input_video", input_video: given })
  await refusal(input({})).toMatchObject({ status: 400 })
  await refusal(input({ url: "a", data: "b" })).toMatchObject({ status: 400 })
  await refusal(input({ data: "!" })).toMatchObject({
    param: "messages[0].content[0].input_video.data",
  })
})

describe("frames", () => {
  const limits = { perSecond: 1, most: 16, maxSeconds: 600 }

  it("are one a second, and spread evenly over a longer video", async () => {
    expect(frameTimes(3, limits)).toEqual([0, 1, 2])
    expect(frameTimes(2.2, { perSecond: 2, most: 9 })).toEqual([0, 0.5, 1, 1.5, 2])
    expect(frameTimes(0.01, limits)).toEqual([0])
    expect(frameTimes(40, { perSecond: 1, most: 4 })).toEqual([5, 15, 25, 35])
    const long = await decodeVideo({ ...limits, bytes: clip("long.mp4"), most: 4 })
    if ("refused" in long) throw new Error(long.refused)
    expect([long.frames.length, Math.round(long.seconds)]).toEqual([4, 40])
  })

  it("of a video that is too long are not taken", async () => {
    expect(await decodeVideo({ ...limits, bytes: clip("long.mp4"), maxSeconds: 30 })).toEqual({
      refused: "has 40 seconds; at most 30 are taken",
    })
  })
})

it("usage and the paths of errors know that a block became several parts", async () => {
  const used = () => ({ m: usageOf({ inputTokens: 90, imageTokens: 64 }) })
  const call = { used, cost: () => 0n }
  expect(usageNow(call, "m", { videoFrames: 4 }).prompt_tokens_details).toMatchObject({
    video_frames: 4,
  })
  expect(usageNow(call, "m").prompt_tokens_details).not.toHaveProperty("video_frames")
  const part = { type: "media", mediaType: "image/png", bytes: Buffer.alloc(1) } as const
  const [clipBlock, image] = [video("a"), { type: "image_url", image_url: { url: "b" } }] as never[]
  const media = new Map([
    [clipBlock!, [part, part, part]],
    [image!, [part]],
  ])
  expect([framesIn(media), picturesIn(media)]).toEqual([3, 4])
  const body = { messages: [{ role: "user", content: [text("a"), clipBlock, image] }] } as never
  const pathOf = (param: string) =>
    withBlockPath(body, media, { code: "invalid_request_error", message: "m", param } as never)
      .param
  expect(pathOf("messages[0].content[3].image_url.url")).toBe("messages[0].content[1]")
  expect(pathOf("messages[0].content[4].image_url.url")).toBe(
    "messages[0].content[2].image_url.url",
  )
  expect(pathOf("messages")).toBe("messages")
})
