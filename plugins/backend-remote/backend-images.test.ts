import { Cause, Effect, Exit, Option, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { ApiError } from "../../core/errors.ts"
import type { ImageEvent } from "../../core/ports/image.ts"
import type { ImageRequest } from "../../core/ports/model.ts"
import { greyPng as png } from "./testing/grey-png.ts"
import { contextOf, openRemote } from "./testing/open-remote.ts"
import {
  begin,
  event,
  json,
  openScripted,
  type Script,
  type ScriptedUpstream,
  stream,
} from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  upstream = await openScripted()
})
afterEach(() => remote?.close())
afterAll(() => upstream.close())

const picture = png().toString("base64")
const reply = (b64_json = picture) => json({ created: 1, data: [{ b64_json }] })

const request = (more: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "a red apple",
  images: [],
  width: 64,
  height: 48,
  steps: 3,
  seed: 7,
  guidanceScale: 1,
  ...more,
})

const draw = async (
  script: Script,
  more: Partial<ImageRequest> = {},
  { kind = "vllm", allow = "", ...options }: Readonly<Record<string, unknown>> = {},
) => {
  upstream.play(script)
  remote = openRemote()
  if (allow) remote.allow(String(allow))
  const upstreams = [{ url: upstream.url, model: "m", kind }]
  const { task } = await remote.open("image", { upstreams, retries: 0, ...options })
  const call = contextOf()
  const events: ImageEvent[] = []
  const exit = await Effect.runPromiseExit(
    Effect.flatMap(task.plan(request(more), call.context), ({ run }) =>
      Stream.runForEach(run, (one) => Effect.sync(() => void events.push(one))),
    ),
  )
  const error = Exit.isFailure(exit)
    ? (Option.getOrUndefined(Cause.findErrorOption(exit.cause)) as ApiError | undefined)
    : undefined
  const last = events.at(-1)
  const reasons = remote.log.lines.flatMap(({ event: name, fields }) =>
    name === "upstream.failed" ? [fields.reason] : [],
  )
  return {
    steps: events.flatMap((one) => (one.type === "step" ? [one] : [])),
    bytes: last?.type === "image" ? Buffer.from(last.bytes) : undefined,
    ignored: last?.type === "image" ? last.ignored : undefined,
    error,
    reasons,
    images: call.used().images,
  }
}

describe("a picture", () => {
  it("is asked for with all its settings, comes in base64, and costs one image", async () => {
    const { bytes, steps, images, ignored } = await draw(reply())
    expect(bytes?.equals(png())).toBe(true)
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3])
    expect([images, ignored]).toEqual([1, undefined])
    expect(upstream.asked[0]?.path).toBe("/v1/images/generations")
    expect(upstream.asked[0]?.body).toEqual({
      model: "m",
      prompt: "a red apple",
      n: 1,
      size: "64x48",
      response_format: "b64_json",
      output_format: "png",
      seed: 7,
      num_inference_steps: 3,
      guidance_scale: 1,
    })
  })

  it("is fetched from its address through the guard of outbound requests", async () => {
    const at = (path: string) => json({ data: [{ url: `${upstream.url}${path}` }] })
    const serving: Script = (res, asked) =>
      asked.path.endsWith("x.png") ? res.end(png()) : at("/files/x.png")(res, asked)
    const { bytes, images } = await draw(serving, {}, { allow: upstream.host })
    expect([bytes?.equals(png()), images]).toEqual([true, 1])
    expect(upstream.asked.map(({ path }) => path)).toEqual([
      "/v1/images/generations",
      "/files/x.png",
    ])
    // the key is for the upstream only
    expect(upstream.asked[1]?.headers.authorization).toBeUndefined()
  })

  it.each([
    ["a private address", "http://127.0.0.1:1/x.png"],
    ["a file", "file:///etc/passwd"],
    ["the metadata of a cloud", "http://169.254.169.254/latest/meta-data"],
    ["a path without a host", "/v1/images/1/content"],
  ])("is not fetched from %s", async (_, url) => {
    const { error, reasons, images } = await draw(json({ data: [{ url }] }))
    expect([error?.code, images]).toEqual(["backend_error", 0])
    expect(reasons).toEqual([expect.stringMatching(/^its picture's address is refused: /)])
  })

  it.each([
    ["nothing", json({ data: [] }), /it sent no picture/],
    ["another size", reply(png(32, 32).toString("base64")), /has 32x32 pixels, not 64x48/],
    ["a JPEG", reply(Buffer.from("\xff\xd8\xff\xe0rest", "latin1").toString("base64")), /a JPEG/],
    ["half a PNG", reply(png().subarray(0, 60).toString("base64")), /is cut/],
    ["what is no base64", reply("!!!"), /is not in base64/],
    ["an error with status 200", json({ error: { message: "out of memory" } }), /out of memory/],
  ])("that is %s fails by name, and costs nothing", async (_, script, why) => {
    const { error, reasons, images } = await draw(script)
    expect([error?.code, images]).toEqual(["backend_error", 0])
    expect(reasons).toEqual([expect.stringMatching(why)])
  })

  it("that the server refuses is refused by its reason", async () => {
    const refused = { error: { message: "not this", code: "moderation_blocked" } }
    const { error } = await draw(json(refused, 400))
    expect([error?.code, error?.message]).toEqual([
      "content_policy_violation",
      expect.stringMatching("not this"),
    ])
  })

  it("that takes too long fails at its deadline, and the server is left", async () => {
    let left: Promise<unknown> | undefined
    const { error } = await draw(
      (_, asked) => {
        left = asked.left
      },
      {},
      { firstByteTimeoutMs: 60 },
    )
    expect(error?.code).toBe("backend_timeout")
    await left
  })

  it("that nobody waits for is given up at the server", async () => {
    let left: Promise<unknown> | undefined
    const asked = new Promise<void>((resolve) => {
      upstream.play((_, { left: gone }) => {
        left = gone
        resolve()
      })
    })
    remote = openRemote()
    const upstreams = [{ url: upstream.url, model: "m", kind: "vllm" }]
    const { task } = await remote.open("image", { upstreams })
    const call = contextOf()
    const { run } = await Effect.runPromise(task.plan(request(), call.context))
    const leaving = new AbortController()
    const running = Effect.runPromiseExit(Stream.runDrain(run), { signal: leaving.signal })
    await asked
    leaving.abort()
    await Promise.all([running, left])
    expect(call.used().images).toBe(0)
  })
})

describe("a setting that the server does not keep", () => {
  it.each([
    ["seed", { seed: 7, unsaid: ["steps", "guidanceScale"] }],
    ["num_steps", { unsaid: ["seed", "guidanceScale"] }],
    ["guidance_scale", { unsaid: ["seed", "steps"] }],
  ] as const)("is refused by name where the client says it: %s", async (param, more) => {
    const { error } = await draw(reply(), more as Partial<ImageRequest>, { kind: "openai" })
    expect(error).toMatchObject({ code: "unsupported_parameter", param })
    expect(upstream.asked).toHaveLength(0)
  })

  it.each([
    ["strength", { images: [png()], strength: 0.5 }, "vllm"],
    ["partial_images", { previews: 1 }, "sglang"],
    ["image", { images: [png()] }, "compatible"],
    ["lora", { adapter: { id: "dark", strength: 1 } }, "vllm"],
  ])("is refused by name: %s", async (param, more, kind) => {
    const all = { unsaid: ["seed", "steps", "guidanceScale"] as const, ...more }
    const { error } = await draw(reply(), all, { kind })
    expect(error).toMatchObject({ code: "unsupported_parameter", param })
    expect(upstream.asked).toHaveLength(0)
  })

  it("is named in the picture where it was left to us, and not sent", async () => {
    const unsaid = ["seed", "steps", "guidanceScale"] as const
    const { bytes, steps, ignored } = await draw(reply(), { unsaid }, { kind: "openai" })
    expect([bytes !== undefined, steps, ignored]).toEqual([true, [], unsaid])
    expect(upstream.asked[0]?.body).toEqual({
      model: "m",
      prompt: "a red apple",
      n: 1,
      size: "64x48",
    })
  })
})

describe("an edit", () => {
  const unsaid = ["strength"] as const
  const edit = (count: number) =>
    ({ images: Array.from({ length: count }, () => png()), strength: 0.75, unsaid }) as const

  it("is sent as a form with its files", async () => {
    const { bytes, ignored } = await draw(reply(), edit(2))
    expect([bytes?.equals(png()), ignored]).toEqual([true, ["strength"]])
    const { path, headers, body } = upstream.asked[0]!
    expect(path).toBe("/v1/images/edits")
    expect(headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/)
    const form = await new Response(body.form, {
      headers: { "content-type": headers["content-type"]! },
    }).formData()
    expect([form.get("prompt"), form.get("size"), form.get("seed")]).toEqual([
      "a red apple",
      "64x48",
      "7",
    ])
    const files = form.getAll("image[]") as File[]
    expect(files.map(({ type, name }) => [type, name])).toEqual([
      ["image/png", "1.png"],
      ["image/png", "2.png"],
    ])
    expect(Buffer.from(await files[0]!.arrayBuffer()).equals(png())).toBe(true)
  })

  it("is JSON for another Rakit, with the strength", async () => {
    await draw(reply(), edit(1), { kind: "rakit" })
    expect(upstream.asked[0]?.body).toMatchObject({ images: [picture], strength: 0.75 })
  })
})

describe("previews", () => {
  const partial = (index: number) => ({
    type: "image_generation.partial_image",
    partial_image_index: index,
    b64_json: png(8, 8).toString("base64"),
  })
  const completed = { type: "image_generation.completed", b64_json: picture }

  it("come as the server streams them, with the steps between", async () => {
    const script = stream(partial(0), partial(1), partial(2), completed, "[DONE]")
    const { steps, bytes, images } = await draw(
      script,
      { previews: 2, steps: 6 },
      { kind: "rakit" },
    )
    expect(steps.map(({ step, preview }) => [step, preview !== undefined])).toEqual([
      [1, false],
      [2, true],
      [3, false],
      [4, true],
      [5, false],
      [6, false],
    ])
    expect([bytes?.equals(png()), images]).toEqual([true, 1])
    expect(upstream.asked[0]?.body).toMatchObject({ stream: true, partial_images: 2 })
  })

  it.each([
    ["ends without a picture", stream(partial(0), "[DONE]"), /ended without a picture/],
    ["breaks off", (res) => void begin(res).write(event(partial(0)), () => res.destroy()), /cut/],
    ["fails on the way", stream(partial(0), { error: { message: "no" } }), /it failed: no/],
    ["is no stream", reply(), /not a stream/],
    ["is no JSON", stream("{"), /is not JSON/],
  ] as [string, Script, RegExp][])(
    "of a stream that %s fail, and cost nothing",
    async (_, script, why) => {
      const { error, reasons, images } = await draw(script, { previews: 2 }, { kind: "rakit" })
      expect([error?.code, images]).toEqual(["backend_error", 0])
      expect(reasons).toEqual([expect.stringMatching(why)])
    },
  )
})
