import type OpenAI from "openai"
import { toFile } from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { type ClientFixture, openClient, wordSafety } from "./testing/open-client.ts"
import { readPng } from "./testing/png-reader.ts"

let fixture: ClientFixture
const open = async (...script: Parameters<typeof openClient>) => {
  fixture = await openClient(...script)
  return fixture.client
}
afterEach(() => fixture.deps.close())

const apple = { model: "svc-iris", prompt: "Sebuah apel 🍎 merah" }
const png = (width: number, height: number, colour: string) =>
  plainImage(width, height, colour).png().toBuffer()
const file = async (width: number, height: number, colour = "red") =>
  toFile(await png(width, height, colour), `${colour}.png`, { type: "image/png" })

/** Fields of ours that the client's types don't have are sent all the same. */
const own = (more: object) => more as object

describe("images.generate", () => {
  it("gives a PNG with its parameters inside", async () => {
    const client = await open()
    const reply = await client.images.generate({ ...apple, ...own({ seed: 7 }) })
    expect(reply).toMatchObject({
      created: expect.any(Number),
      size: "768x768",
      usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, images: 1, cost_idr: 750 },
    })
    expect(await readPng(reply.data?.[0]?.b64_json)).toEqual({
      width: 768,
      height: 768,
      parameters: {
        prompt: apple.prompt,
        model: "svc-iris",
        size: "768x768",
        num_steps: 4,
        seed: 7,
        guidance_scale: 1,
        lora: "none",
      },
    })
  })

  it("asks the model for what the request says", async () => {
    const client = await open()
    const more = {
      num_steps: 9,
      seed: 0,
      guidance_scale: 7.5,
      lora: "dark",
      lora_strength: 1.5,
    }
    const size = "959x65" as "auto"
    const reply = await client.images.generate({ ...apple, size, n: 1, ...own(more) })
    expect(fixture.model.runs[0]?.request).toEqual({
      prompt: apple.prompt,
      images: [],
      width: 944,
      height: 64,
      steps: 9,
      seed: 0,
      guidanceScale: 7.5,
      adapter: { id: "dark", strength: 1.5 },
    })
    const { parameters } = await readPng(reply.data?.[0]?.b64_json)
    expect(parameters).toMatchObject({ size: "944x64", lora: "dark", lora_strength: 1.5 })
  })

  it("takes a random seed, and names it in the file", async () => {
    const client = await open()
    const seeds = []
    for (const more of [{}, { seed: -1 }, { seed: null }]) {
      const { data } = await client.images.generate({ ...apple, size: "auto", ...own(more) })
      const { parameters } = await readPng(data?.[0]?.b64_json)
      seeds.push(parameters?.seed)
      expect(parameters?.seed).toBe(fixture.model.runs.at(-1)?.request.seed)
    }
    expect(new Set(seeds).size).toBe(3)
    expect(seeds.every((seed) => Number.isInteger(seed) && (seed as number) >= 0)).toBe(true)
  })

  it("gives equal bytes for equal seeds", async () => {
    const client = await open()
    const ask = async (seed: number) => {
      const { data } = await client.images.generate({ ...apple, ...own({ seed }) })
      return data?.[0]?.b64_json
    }
    const [one, same, other] = [await ask(5), await ask(5), await ask(6)]
    expect(same).toBe(one)
    expect(other).not.toBe(one)
  })

  it("refuses what it does not serve, by name", async () => {
    const client = await open()
    const refused: readonly (readonly [Partial<OpenAI.ImageGenerateParams>, string])[] = [
      [{ response_format: "url" }, "response_format"],
      [{ n: 2 }, "n"],
      [{ background: "transparent" }, "background"],
      [{ output_format: "webp" }, "output_format"],
      [{ quality: "high" }, "quality"],
      [{ style: "vivid" }, "style"],
      [{ size: "1024x1024" }, "size"],
      [{ moderation: "low" }, "moderation"],
    ]
    for (const [more, param] of refused)
      await expect(
        client.images.generate({ ...apple, ...more, stream: false }),
        param,
      ).rejects.toMatchObject({
        status: 400,
        param,
        message: expect.stringContaining(param),
      })
    expect(fixture.model.runs).toHaveLength(0)
    const { data } = await client.images.generate({
      ...apple,
      quality: "auto",
      background: "auto",
      moderation: "auto",
      output_format: "png",
      response_format: "b64_json",
      user: "u1",
    })
    expect(data).toHaveLength(1)
  })
})

describe("images.generate with stream", () => {
  it.each([0, 1, 2, 3])("sends %i previews, then the picture", async (partial_images) => {
    const client = await open()
    const stream = await client.images.generate({ ...apple, stream: true, partial_images })
    const events: OpenAI.ImageGenStreamEvent[] = []
    for await (const event of stream) events.push(event)
    expect(events.map(({ type }) => type)).toEqual([
      ...Array<string>(partial_images).fill("image_generation.partial_image"),
      "image_generation.completed",
    ])
    for (const [index, event] of events.entries()) {
      expect(event).toMatchObject({
        created_at: expect.any(Number),
        size: "768x768",
        quality: "auto",
        background: "opaque",
        output_format: "png",
      })
      if (event.type === "image_generation.partial_image")
        expect(event.partial_image_index).toBe(index)
      else expect(event.usage).toMatchObject({ images: 1, cost_idr: 750, input_tokens: 0 })
      const { parameters } = await readPng(event.b64_json)
      expect(parameters?.prompt).toBe(index === partial_images ? apple.prompt : undefined)
    }
  })

  it("gives the picture that it gives without", async () => {
    const client = await open()
    const body = { ...apple, ...own({ seed: 3 }) }
    const { data } = await client.images.generate(body)
    const stream = await client.images.generate({ ...body, stream: true, partial_images: 2 })
    let last = ""
    for await (const event of stream) last = event.b64_json
    expect(last).toBe(data?.[0]?.b64_json)
  })

  it("ends with the error when safety refuses the picture behind its previews", async () => {
    const { safety } = wordSafety({ picture: (before) => before === 2 })
    const client = await open({}, safety)
    const stream = await client.images.generate({ ...apple, stream: true, partial_images: 2 })
    const types: string[] = []
    const read = async () => {
      for await (const { type } of stream) types.push(type)
    }
    await expect(read()).rejects.toMatchObject({ code: "content_policy_violation" })
    expect(types).toEqual(Array(2).fill("image_generation.partial_image"))
  })
})

describe("images.edit", () => {
  it("takes one file", async () => {
    const client = await open()
    const image = await file(300, 200)
    const reply = await client.images.edit({ ...apple, image, ...own({ strength: 0.5, seed: 2 }) })
    expect(fixture.model.runs[0]?.request).toMatchObject({
      width: 288,
      height: 192,
      strength: 0.5,
      seed: 2,
      steps: 4,
      images: [await png(300, 200, "red")],
    })
    expect(await readPng(reply.data?.[0]?.b64_json)).toMatchObject({
      width: 288,
      height: 192,
      parameters: { prompt: apple.prompt, strength: 0.5, seed: 2 },
    })
  })

  it("takes several files, in their order", async () => {
    const client = await open()
    const colours = ["red", "lime", "blue", "white", "black"]
    const image = await Promise.all(colours.map((colour) => file(100, 80, colour)))
    await client.images.edit({ ...apple, image, size: "512x512" as "auto" })
    const { request } = fixture.model.runs[0]!
    expect(request.images).toEqual(await Promise.all(colours.map((one) => png(100, 80, one))))
    expect(request).toMatchObject({ width: 512, height: 512, strength: 0.75 })
  })

  it("refuses a mask by name, and six files", async () => {
    const client = await open()
    const image = await file(64, 64)
    await expect(client.images.edit({ ...apple, image, mask: image })).rejects.toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      param: "mask",
    })
    await expect(
      client.images.edit({ ...apple, image: Array(6).fill(image) }),
    ).rejects.toMatchObject({ status: 400, param: "images" })
    await expect(
      client.images.edit({ ...apple, image, size: "720x704" as "auto" }),
    ).rejects.toMatchObject({ status: 400, param: "size" })
  })

  it("streams", async () => {
    const client = await open()
    const image = await file(2_000, 1_000)
    const stream = await client.images.edit({ ...apple, image, stream: true, partial_images: 1 })
    const events: OpenAI.ImageEditStreamEvent[] = []
    for await (const event of stream) events.push(event)
    expect(events).toMatchObject([
      { type: "image_edit.partial_image", partial_image_index: 0, size: "704x352" },
      { type: "image_edit.completed", size: "704x352", usage: { images: 1, cost_idr: 750 } },
    ])
  })
})
