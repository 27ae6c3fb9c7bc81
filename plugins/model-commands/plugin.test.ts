import "reflect-metadata/lite"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

const registered = (settings: object) => {
  const container = root.createChildContainer()
  plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings) as never).register?.(container)
  return container
}
const offered = (settings: object) => resolveAll(registered(settings), Tokens.models)
const weights = join(import.meta.dirname, "weights")
const json = (name: string) => JSON.parse(readFileSync(join(weights, name), "utf8"))

it("brings svc-dengar, or the name and price of the settings", () => {
  expect(offered({})).toMatchObject([
    { id: "svc-dengar", task: "transcribe", sources: [{ url: `file:${weights}/` }] },
  ])
  expect(offered({ id: "remote-control", price: { audioSecond: 2 } })).toMatchObject([
    { id: "remote-control", price: { audioSecond: 2 } },
  ])
})

it("is what chat models hear by, which the settings name", () => {
  const parts = (settings: object) => resolveAll(registered(settings), Tokens.adapters)
  expect(parts({})).toEqual([])
  expect(parts({ models: ["svc-lyt"] })).toEqual([
    { model: "svc-lyt", id: "hearing", sources: [{ url: `file:${weights}/` }] },
  ])
})

it("has a word in the vocabulary for each that the recipe speaks", () => {
  const { model, added_tokens: added } = json("tokenizer.json") as {
    readonly model: { readonly vocab: Readonly<Record<string, number>> }
    readonly added_tokens: readonly { readonly content: string }[]
  }
  const words = Object.keys(model.vocab).map((word) => word.replace("▁", ""))
  expect(words).toEqual(expect.arrayContaining(["seven", "tujuh", "siete", "nyalakan", "door"]))
  expect(json("config.json").vocab_size).toBe(words.length + added.length)
})
