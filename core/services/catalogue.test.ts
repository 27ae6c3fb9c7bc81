import { Effect } from "effect"
import { expect, it } from "vitest"
import { fakeChatModel, fakeEntry } from "../../testing/index.ts"
import { freePrice } from "../pricing.ts"
import { makeCatalogue } from "./catalogue.ts"

const chat = fakeChatModel()
const make = () => makeCatalogue([chat.entry, fakeEntry("embed")])
const error = <A, E>(effect: Effect.Effect<A, E>) => Effect.runSync(Effect.flip(effect))

it("finds the model that fits the task, and names those that would", () => {
  const catalogue = make()
  expect(Effect.runSync(catalogue.require("chat", "svc-lyt"))).toBe(chat.entry)
  expect(error(catalogue.require("chat", "gpt-4"))).toMatchObject({
    code: "model_not_found",
    param: "model",
    message: expect.stringContaining("'svc-lyt'"),
  })
  expect(error(catalogue.require("chat", "svc-embed"))).toMatchObject({
    code: "model_not_found",
    message: expect.stringContaining("can't be used at this endpoint"),
  })
  expect(error(catalogue.require("rerank", "x"))).toMatchObject({
    message: expect.stringContaining("No model here fits"),
  })
})

it("finds a model by the names of its adapters", () => {
  const adapters = [{ id: "legal", sources: [] }]
  const catalogue = makeCatalogue([{ ...chat.entry, adapters }])
  expect(catalogue.entry("svc-lyt:legal")).toBe(catalogue.entry("svc-lyt"))
  catalogue.set("svc-lyt", { state: "ready", loaded: chat.loaded })
  expect(Effect.runSync(catalogue.open("chat", "svc-lyt:legal"))).toBe(chat.loaded)
  for (const name of ["svc-lyt:medical", "svc-lyt:", "svc-lyt:legal:legal"])
    expect(error(catalogue.open("chat", name))).toMatchObject({
      code: "model_not_found",
      status: 404,
      message: "There is no such model here. Use 'svc-lyt', 'svc-lyt:legal'.",
    })
})

it("has no such name where the adapter is a part of the model", () => {
  const entry = fakeEntry("embed", { adapters: [{ id: "images", sources: [] }] })
  const catalogue = makeCatalogue([entry])
  expect(catalogue.entry("svc-embed")).toBe(entry)
  expect(catalogue.entry("svc-embed:images")).toBeUndefined()
})

it("opens a model when it is ready, and says why it is not", () => {
  const catalogue = make()
  expect(error(catalogue.open("chat", "svc-lyt"))).toMatchObject({
    code: "model_loading",
    retryAfterMs: 5000,
  })
  catalogue.set("svc-lyt", { state: "failed", reason: "secret path" })
  expect(error(catalogue.open("chat", "svc-lyt"))).toMatchObject({
    code: "backend_error",
    message: expect.not.stringContaining("secret"),
  })
  catalogue.set("svc-lyt", { state: "ready", loaded: chat.loaded })
  expect(Effect.runSync(catalogue.open("chat", "svc-lyt"))).toBe(chat.loaded)
  expect(error(catalogue.open("embed", "svc-lyt"))).toMatchObject({ code: "model_not_found" })
})

it("has prices; an unknown model is free", () => {
  const catalogue = make()
  catalogue.set("svc-lyt", { state: "ready", loaded: chat.loaded })
  expect([catalogue.price("svc-lyt"), catalogue.price("x")]).toEqual([chat.entry.price, freePrice])
})

it("knows what is served from the description, then from the open model, and keeps it", () => {
  const catalogue = make()
  const windowOf = () => catalogue.served(chat.entry).contextTokens
  expect(windowOf()).toBe(0)
  catalogue.describe("svc-lyt", { contextTokens: 100, modalities: ["text"], capabilities: [] })
  expect(windowOf()).toBe(100)
  catalogue.set("svc-lyt", { state: "ready", loaded: { ...chat.loaded, contextTokens: 90 } })
  expect(windowOf()).toBe(90)
  catalogue.set("svc-lyt", { state: "loading", detail: "" })
  expect(windowOf()).toBe(90)
  catalogue.describe("x", { contextTokens: 1, modalities: [], capabilities: [] })
})
