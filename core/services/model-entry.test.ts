import { expect, it } from "vitest"
import { fakeEntry } from "../../testing/index.ts"
import { parsePrice } from "../pricing.ts"
import { servedModel } from "./model-entry.ts"

const price = parsePrice({ input: 8, output: 32, image: 25, audioSecond: 3, searchUnit: 2 })
const chat = fakeEntry("chat", {
  contextTokens: 49_152,
  maxOutputTokens: 16_384,
  modalities: ["text", "image"],
  capabilities: ["chat", "tool_use", "vision", "thinking"],
  price,
})

it("serves what config promises, as far as the model can do it", () => {
  const abilities = { modalities: ["text"], capabilities: ["tool_use", "prompt_caching"] }
  expect(servedModel(chat, { contextTokens: 8_192, ...abilities })).toEqual({
    contextTokens: 8_192,
    maxOutputTokens: 8_192,
    modalities: ["text"],
    capabilities: ["chat", "tool_use"],
    price: { ...price, image: 0n, audioSecond: 0n, searchUnit: 0n },
  })
  expect(servedModel(chat, { contextTokens: 200_000, ...abilities })).toMatchObject({
    contextTokens: 49_152,
    maxOutputTokens: 16_384,
  })
})

it("promises nothing beside the task of a model that is not known yet", () => {
  expect(servedModel(chat)).toEqual({
    contextTokens: 0,
    maxOutputTokens: 0,
    modalities: ["text"],
    capabilities: ["chat"],
    price: { ...price, cacheRead: 0n, cacheWrite: 0n, image: 0n, audioSecond: 0n, searchUnit: 0n },
  })
})

it("has no price for what the model lacks", () => {
  const text = { contextTokens: 256, modalities: ["text"], capabilities: [] }
  const seeing = { ...text, modalities: ["text", "image"] }
  const priceOf = (task: "embed" | "rerank" | "image" | "transcribe", abilities = text) =>
    Object.entries(servedModel(fakeEntry(task, { price }), abilities).price)
      .filter(([, nano]) => nano > 0n)
      .map(([what]) => what)
  expect(priceOf("embed")).toEqual(["input"])
  expect(priceOf("embed", seeing)).toEqual(["input", "image"])
  expect(priceOf("rerank")).toEqual(["input", "searchUnit"])
  expect(priceOf("image")).toEqual(["image"])
  expect(priceOf("transcribe")).toEqual(["audioSecond"])
})
