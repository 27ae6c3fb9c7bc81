import { describe, expect, it } from "vitest"
import { megabyte } from "../../core/ports/endpoint.ts"
import {
  callPathFixture,
  type FakeEmbedScript,
  fakeChatModel,
  fakeEmbedModel,
} from "../../testing/index.ts"
import { makeEmbeddingsEndpoint } from "./endpoint.ts"
import type { EmbeddingsReply } from "./schema.ts"

const png = Buffer.from("\x89PNG\r\n\x1a\n----", "latin1")
const jpeg = Buffer.from("\xff\xd8\xff\xe0----", "latin1")
const uri = (bytes: Buffer, type = "image/png") => `data:${type};base64,${bytes.toString("base64")}`
const image = { type: "image", image: png.toString("base64") }

const open = (
  script: FakeEmbedScript = { entry: { modalities: ["text", "image"], contextTokens: 100 } },
) => {
  const model = fakeEmbedModel(script)
  const fixture = callPathFixture([model, fakeChatModel()])
  const endpoint = makeEmbeddingsEndpoint(fixture)
  const ask = (more: object) => fixture.ask(endpoint, { model: "svc-embed", ...more })
  const reply = async (more: object) => {
    const answer = await ask(more)
    expect(answer).toMatchObject({ status: 200 })
    return answer.json as EmbeddingsReply
  }
  return { model, fixture, ask, reply }
}

const numbers = (reply: EmbeddingsReply, index = 0) =>
  reply.data[index]?.embedding as readonly number[]
const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0)

describe("embeddings of texts", () => {
  it("have the shape of the contract, the space's name and a price", async () => {
    const { status, json, headers } = await open().ask({ input: "satu dua" })
    expect([status, headers["x-embedding-space"], headers["x-cost-idr"]]).toEqual([
      200,
      "fake-words-v1",
      "0.003",
    ])
    expect(json).toEqual({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: expect.any(Array), type: "text" }],
      model: "svc-embed",
      usage: {
        prompt_tokens: 2,
        total_tokens: 2,
        image_count: 0,
        truncated_count: 0,
        cost_idr: 0.003,
      },
    })
    expect(numbers(json as EmbeddingsReply)).toHaveLength(2048)
  })

  it("keep the order of the input", async () => {
    const { reply } = open()
    const input = ["satu", "dua", "tiga"]
    const all = await reply({ input })
    expect(all.data.map((item) => item.index)).toEqual([0, 1, 2])
    for (const [i, text] of input.entries())
      expect(numbers(all, i)).toEqual(numbers(await reply({ input: text })))
  })

  it("are shortened to a normalized prefix", async () => {
    const { reply } = open()
    const whole = numbers(await reply({ input: "satu dua tiga empat" }))
    for (const dimensions of [2048, 1000, 256]) {
      const short = numbers(await reply({ input: "satu dua tiga empat", dimensions }))
      expect(short).toHaveLength(dimensions)
      expect(dot(short, short)).toBeCloseTo(1, 5)
      expect(dot(short, whole.slice(0, dimensions)) ** 2).toBeCloseTo(
        dot(whole.slice(0, dimensions), whole.slice(0, dimensions)),
        5,
      )
    }
  })

  it("come as little-endian base64 when asked", async () => {
    const { reply } = open()
    const [item] = (await reply({ input: "satu", encoding_format: "base64", dimensions: 512 })).data
    const bytes = Buffer.from(item?.embedding as string, "base64")
    expect(Array.from({ length: 512 }, (_, i) => bytes.readFloatLE(4 * i))).toEqual(
      numbers(await reply({ input: "satu", dimensions: 512 })),
    )
  })

  it("are cut at 10,000 characters, not bytes or halves of pairs", async () => {
    const { ask, reply, model } = open()
    const text = `${"😀".repeat(6_000)}${"a".repeat(6_000)}`
    expect((await reply({ input: [text, "b"] })).usage.truncated_count).toBe(1)
    expect((await reply({ input: text, truncate: "START" })).usage.truncated_count).toBe(1)
    expect(
      (await reply({ input: "😀".repeat(10_000), truncate: "NONE" })).usage.truncated_count,
    ).toBe(0)
    expect(model.runs.slice(0, 2).map((run) => run.request.items[0])).toEqual([
      { type: "text", text: "😀".repeat(6_000) + "a".repeat(4_000) },
      { type: "text", text: "😀".repeat(4_000) + "a".repeat(6_000) },
    ])
    expect(await ask({ input: ["b", text], truncate: "NONE" })).toMatchObject({
      status: 422,
      json: { code: "text_too_long", param: "input[1]" },
    })
    expect(await ask({ input: text, truncate: "NONE" })).toMatchObject({
      status: 422,
      json: { code: "text_too_long", param: "input" },
    })
  })

  it("count what the model cuts, each item once", async () => {
    const { ask, reply } = open()
    const tooManyTokens = "kata ".repeat(150)
    const both = "kata ".repeat(3_000)
    expect((await reply({ input: [tooManyTokens, both, "kata"] })).usage.truncated_count).toBe(2)
    expect(await ask({ input: tooManyTokens, truncate: "NONE" })).toMatchObject({
      status: 422,
      json: { code: "text_too_long" },
    })
  })

  it("pass the instruction on", async () => {
    const { model, reply } = open()
    await reply({ input: "a", instruction: "Find facts" })
    await reply({
      input: "a",
      instruction: null,
      truncate: null,
      dimensions: null,
      encoding_format: null,
    })
    expect(model.runs.map((run) => run.request.instruction)).toEqual(["Find facts", undefined])
  })
})

describe("embeddings of images", () => {
  it("take all three forms, beside texts", async () => {
    const { reply, model } = open()
    const input = [
      "teks",
      image,
      { type: "image", image_url: uri(jpeg, "image/jpeg") },
      { type: "image_url", image_url: { url: uri(png) } },
    ]
    const { data, usage } = await reply({ input })
    expect(data.map((item) => [item.index, item.type])).toEqual([
      [0, "text"],
      [1, "image"],
      [2, "image"],
      [3, "image"],
    ])
    expect(usage).toEqual({
      prompt_tokens: 1,
      total_tokens: 1,
      image_count: 3,
      truncated_count: 0,
      cost_idr: 75.0015,
    })
    expect(model.runs[0]?.request.items.slice(1)).toEqual(
      [png, jpeg, png].map((bytes, i) => ({
        type: "media",
        mediaType: i === 1 ? "image/jpeg" : "image/png",
        bytes,
      })),
    )
  })

  it("alone have no prompt tokens", async () => {
    expect((await open().reply({ input: [image] })).usage).toMatchObject({
      prompt_tokens: 0,
      image_count: 1,
      cost_idr: 25,
    })
  })

  it("of a text model are unsupported", async () => {
    expect(await open({}).ask({ input: [image] })).toMatchObject({
      status: 400,
      json: { code: "unsupported_parameter" },
    })
  })

  it("can't have an instruction", async () => {
    expect(await open().ask({ input: ["a", image], instruction: "x" })).toMatchObject({
      status: 422,
      json: { code: "instruction_with_image", param: "instruction" },
    })
  })

  it("may have 20 MB, decoded", async () => {
    const bytes = Buffer.alloc(20 * megabyte)
    png.copy(bytes)
    expect(
      (await open().reply({ input: [{ type: "image", image: bytes.toString("base64") }] })).data,
    ).toHaveLength(1)
    for (const more of [1, 2, 3, 1000]) {
      const larger = Buffer.concat([bytes, Buffer.alloc(more)])
      expect(
        await open().ask({ input: [{ type: "image", image_url: uri(larger) }] }),
      ).toMatchObject({ status: 400, json: { param: "input[0].image_url" } })
    }
  })
})

describe("a wrong field is 400 with its path", () => {
  const many = (n: number, item: unknown) => Array(n).fill(item)
  it.each<[string, object]>([
    ["model", { model: undefined, input: "a" }],
    ["input", {}],
    ["input", { input: null }],
    ["input", { input: 5 }],
    ["input", { input: "" }],
    ["input", { input: [] }],
    ["input", { input: many(65, "a") }],
    ["input", { input: many(9, image) }],
    ["input[1]", { input: ["a", ""] }],
    ["input", { input: " \n" }],
    ["input[1]", { input: ["a", "\u3000\t"] }],
    ["input[2]", { input: [1, 2, "x"] }],
    ["input[1]", { input: [1, 2.5] }],
    ["input[0]", { input: [-1] }],
    ["input[0]", { input: [2 ** 31] }],
    ["input[1]", { input: [1, 50_000] }],
    ["input[0]", { input: [[]] }],
    ["input[1][0]", { input: ["a", [50_000]] }],
    ["input[1][1]", { input: [[1], [2, null]] }],
    ["input[0]", { input: [true] }],
    ["input", { input: many(65, [1]) }],
    ["input[0]", { input: [{ type: "video" }] }],
    ["input[0].image", { input: [{ type: "image" }] }],
    ["input[0].image", { input: [{ type: "image", image: "" }] }],
    ["input[1].image", { input: ["a", { type: "image", image: "a*b=" }] }],
    ["input[0].image", { input: [{ type: "image", image: "abc" }] }],
    [
      "input[0].image",
      { input: [{ type: "image", image: Buffer.from("no image").toString("base64") }] },
    ],
    ["input[0].image", { input: [{ type: "image", image: uri(png) }] }],
    ["input[0].image_url", { input: [{ type: "image", image_url: "https://example.com/a.png" }] }],
    ["input[0].image_url", { input: [{ type: "image", image_url: "data:image/png,abc" }] }],
    ["input[0].image_url", { input: [{ type: "image", image_url: uri(png, "image/svg+xml") }] }],
    ["input[0].image_url", { input: [{ type: "image", image_url: uri(png, "text/plain") }] }],
    ["input[0].image_url", { input: [{ type: "image_url", image_url: uri(png) }] }],
    [
      "input[0].image_url.url",
      { input: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
    ],
    ["dimensions", { input: "a", dimensions: 0 }],
    ["dimensions", { input: "a", dimensions: 2049 }],
    ["dimensions", { input: "a", dimensions: 1.5 }],
    ["encoding_format", { input: "a", encoding_format: "hex" }],
    ["instruction", { input: "a", instruction: 5 }],
    ["truncate", { input: "a", truncate: "MIDDLE" }],
  ])("%s", async (param, more) => {
    expect(await open().ask(more)).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param },
    })
  })

  it("says what an item must be, and who may allow more of them", async () => {
    expect((await open().ask({ input: [5.5, true] })).json).toMatchObject({
      message: "input[0]: must be a token id: a whole number",
    })
    expect((await open().ask({ input: [true] })).json).toMatchObject({
      message: "input[0]: must be a string, an array of token ids or an image object",
    })
    expect((await open().ask({ input: ["a", ""] })).json).toMatchObject({
      message: "input[1]: must not be empty",
    })
    expect((await open().ask({ input: ["a", " "] })).json).toMatchObject({
      message: "input[1]: must not be blank",
    })
    expect((await open().ask({ input: many(65, "a") })).json).toMatchObject({
      message:
        "input: must hold at most 64 texts; the operator may raise it (maxInputs of endpoint-embeddings)",
    })
  })

  it("counts texts and images apart", async () => {
    expect(
      (await open().reply({ input: [...many(64, "a"), ...many(8, image)] })).data,
    ).toHaveLength(72)
  })

  it("and more dimensions than the space has are refused", async () => {
    expect(await open({ dimensions: 384 }).ask({ input: "a", dimensions: 385 })).toMatchObject({
      status: 400,
      json: { param: "dimensions" },
      costMicros: undefined,
    })
    expect(await open().ask({ input: "a", model: "svc-lyt" })).toMatchObject({
      status: 400,
      json: { code: "model_not_found", param: "model" },
    })
  })
})
