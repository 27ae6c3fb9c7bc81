import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Outbound } from "../../core/services/outbound.ts"
import { plainImage } from "../../testing/images.ts"
import { callPathFixture, fakeChatModel } from "../../testing/index.ts"
import { chatEndpoint } from "./testing/chat-endpoint.ts"

const picture = (colour: string) => plainImage(4, 4, colour).png().toBuffer()
const [red, blue] = await Promise.all([picture("red"), picture("blue")])
const clip = readFileSync(join(import.meta.dirname, "fixtures/colours.mp4"))
const uri = (bytes: Buffer, type: string) => `data:${type};base64,${bytes.toString("base64")}`

/** What a receipt says of a call, where an address has `found`. */
const evidenceOf = async (content: object, found: Buffer = red, settings: object = {}) => {
  const model = fakeChatModel({ entry: { modalities: ["text", "image", "video", "audio"] } })
  const calls = callPathFixture([model])
  const send = () => Effect.succeed({ status: 200, headers: {}, body: found, truncated: false })
  const outbound = { send } as unknown as Outbound
  const body = { model: "svc-lyt", messages: [{ role: "user", content: [content] }] }
  const run = calls.path.runUnsettled(
    chatEndpoint({ ...calls, outbound }, settings),
    calls.input(body as never),
  )
  const { settlement } = await Effect.runPromise(Effect.scoped(run))
  return settlement.evidence ?? {}
}

const image = (url: string) => ({ type: "image_url", image_url: { url } })
const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)

it("names what was found at an address beside the address", async () => {
  const remote = image("https://example.com/a.png")
  const [then, now] = [await evidenceOf(remote), await evidenceOf(remote, blue)]
  expect(then).toMatchObject({ request: now.request, media: digest })
  expect(now.media).not.toBe(then.media)
  expect((await evidenceOf(image(uri(red, "image/png")))).media).toBe(then.media)
})

it("names the frames of a video, which depend on the settings", async () => {
  const video = { type: "video_url", video_url: { url: uri(clip, "video/mp4") } }
  const [then, now] = [await evidenceOf(video), await evidenceOf(video, red, { maxFrames: 2 })]
  expect(then).toMatchObject({ request: now.request, media: digest })
  expect(now.media).not.toBe(then.media)
  expect((await evidenceOf(video)).media).toBe(then.media)
})

it("names no media where there are none", async () => {
  expect(await evidenceOf({ type: "text", text: "Halo" })).not.toHaveProperty("media")
})
