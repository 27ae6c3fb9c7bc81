import { describe, expect, it } from "vitest"
import { parsePrice } from "../../core/pricing.ts"
import {
  callPathFixture,
  fakeChatModel,
  fakeEmbedModel,
  fakeImageModel,
  fakeRerankModel,
} from "../../testing/index.ts"
import { makeModelEndpoint, makeModelsEndpoint } from "./endpoint.ts"

const fixture = callPathFixture([fakeChatModel(), fakeEmbedModel(), fakeRerankModel()])
const asked = { caller: undefined }

const chat = {
  id: "svc-lyt",
  object: "model",
  created: Date.UTC(2026, 0, 15, 12) / 1000,
  owned_by: "tests",
  root: "svc-lyt",
  parent: null,
  tier: "test",
  context_window: 4096,
  max_output_tokens: 1024,
  modalities: ["text"],
  capabilities: ["chat"],
  description: "A fake model for chat",
  pricing_model: "per_token",
  pricing: { input_idr: 1500, output_idr: 6000, cache_read_idr: 150, cache_write_idr: 1875 },
}

describe("the list of models", () => {
  it("is public and has all models of the catalogue, in its order", async () => {
    const { status, json } = await fixture.ask(makeModelsEndpoint(fixture), undefined, asked)
    expect(status).toBe(200)
    expect(json).toMatchObject({
      object: "list",
      has_more: false,
      first_id: "svc-lyt",
      last_id: "svc-rerank",
      data: [chat, { id: "svc-embed" }, { id: "svc-rerank" }],
    })
    expect((json as { data: { pricing: object }[] }).data.map((model) => model.pricing)).toEqual([
      chat.pricing,
      { input_idr: 1500 },
      { search_unit_idr: 2.5 },
    ])
  })

  it("calls a chat model that is also charged by the second of sounds one of tokens", async () => {
    const price = parsePrice({ input: 1500, output: 6000, audioSecond: 1.5 })
    const deps = callPathFixture([
      fakeChatModel({ entry: { price, modalities: ["text", "audio"] } }),
    ])
    const { json } = await deps.ask(makeModelsEndpoint(deps), undefined, asked)
    expect(json).toMatchObject({
      data: [{ pricing_model: "per_token", pricing: { ...chat.pricing, audio_second_idr: 1.5 } }],
    })
  })

  it("has the adapters of a model behind it, priced as it is", async () => {
    const adapters = [{ id: "legal", sources: [] }]
    const deps = callPathFixture([fakeChatModel({ entry: { adapters } }), fakeEmbedModel()])
    const { json } = await deps.ask(makeModelsEndpoint(deps), undefined, asked)
    const legal = { ...chat, id: "svc-lyt:legal", parent: "svc-lyt" }
    expect(json).toMatchObject({ data: [chat, legal, { id: "svc-embed" }] })
    const one = await deps.ask(makeModelEndpoint(deps), undefined, {
      ...asked,
      params: { id: "svc-lyt:legal" },
    })
    expect(one.json).toMatchObject(legal)
  })

  it("has no adapters of an embedding model, which are a part of it", async () => {
    const adapters = [{ id: "images", sources: [] }]
    const deps = callPathFixture([fakeEmbedModel({ entry: { adapters } })])
    const { json } = await deps.ask(makeModelsEndpoint(deps), undefined, asked)
    expect((json as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(["svc-embed"])
  })

  it("may be empty", async () => {
    const { json } = await fixture.ask(makeModelsEndpoint(callPathFixture()), undefined, asked)
    expect(json).toEqual({
      object: "list",
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
  })
})

describe("one model", () => {
  const one = (id: string) =>
    fixture.ask(makeModelEndpoint(fixture), undefined, { ...asked, params: { id } })

  it("has the shape of the contract, whether it is ready or not", async () => {
    expect(await one("svc-lyt")).toMatchObject({ status: 200, json: chat })
    expect(await one("svc-lyt")).toHaveProperty("json.served_by", "fake")
    fixture.catalogue.set("svc-lyt", { state: "waiting" })
    expect(await one("svc-lyt")).not.toHaveProperty("json.served_by")
    expect(await one("svc-lyt")).toMatchObject({ status: 200, json: chat })
  })

  it("names its vector space, as soon as that is known", async () => {
    const deps = callPathFixture([fakeEmbedModel({ entry: { modalities: ["text", "image"] } })])
    const get = async () => {
      const params = { id: "svc-embed" }
      return (await deps.ask(makeModelEndpoint(deps), undefined, { ...asked, params })).json
    }
    expect(await get()).toMatchObject({
      embedding_space: "fake-words-v1",
      modalities: ["text", "image"],
      pricing: { input_idr: 1500, image_idr: 25 },
    })
    deps.catalogue.set("svc-embed", { state: "waiting" })
    expect(await get()).not.toHaveProperty("embedding_space")
    expect(await one("svc-lyt")).not.toHaveProperty("json.embedding_space")
  })

  it("names the LoRAs of an image model, and what a chat model samples best with", async () => {
    const { loaded, ...model } = fakeChatModel()
    const advisedSampling = { temperature: 0.7, source: "files" } as const
    const open = { ...model, loaded: { ...loaded, advisedSampling, adapters: ["legal"] } }
    const deps = callPathFixture([open, fakeImageModel()])
    const get = async (id: string) =>
      (await deps.ask(makeModelEndpoint(deps), undefined, { ...asked, params: { id } })).json
    expect(await get("svc-iris")).toHaveProperty("loras", ["dark", "anime"])
    expect(await get("svc-lyt")).toHaveProperty("recommended_sampling", advisedSampling)
    expect(await get("svc-lyt")).not.toHaveProperty("loras")
    deps.catalogue.set("svc-iris", { state: "waiting" })
    expect(await get("svc-iris")).not.toHaveProperty("loras")
    expect(await one("svc-lyt")).not.toHaveProperty("json.recommended_sampling")
  })

  it("shows what is served, and a promised window beside it", async () => {
    const entry = {
      modalities: ["text", "image"],
      capabilities: ["chat", "vision", "tool_use"],
      price: parsePrice({ input: 1500, output: 6000, image: 25 }),
    }
    const { loaded, ...model } = fakeChatModel({ entry })
    const small = { contextTokens: 256, modalities: ["text"], capabilities: ["tool_use"] }
    const deps = callPathFixture([{ ...model, loaded: { ...loaded, ...small } }])
    const { json } = await deps.ask(makeModelEndpoint(deps), undefined, {
      ...asked,
      params: { id: "svc-lyt" },
    })
    expect(json).toMatchObject({
      context_window: 256,
      advertised_context_window: 4096,
      max_output_tokens: 256,
      modalities: ["text"],
      capabilities: ["chat", "tool_use"],
      pricing: { input_idr: 1500, output_idr: 6000 },
    })
    expect((json as { pricing: object }).pricing).not.toHaveProperty("image_idr")
    expect(await one("svc-lyt")).not.toHaveProperty("json.advertised_context_window")
  })

  it("that is unknown is 404", async () => {
    for (const id of ["gpt-4", "", "__proto__", "svc-lyt/x"])
      expect(await one(id)).toMatchObject({
        status: 404,
        json: { code: "not_found", param: "model" },
      })
  })
})
