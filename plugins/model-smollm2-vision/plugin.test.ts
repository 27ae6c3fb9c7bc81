import "reflect-metadata/lite"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

const offered = (settings: object) => {
  const container = root.createChildContainer()
  plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings) as never).register?.(container)
  return resolveAll(container, Tokens.adapters)
}
const weights = join(import.meta.dirname, "weights")
const json = (name: string) => JSON.parse(readFileSync(join(weights, name), "utf8"))

it("is the tower of svc-omni, or of the models of the settings", () => {
  const tower = { id: "vision", sources: [{ url: `file:${weights}/` }] }
  expect(offered({})).toEqual([{ model: "svc-omni", ...tower }])
  expect(offered({ models: ["a", "b"] })).toEqual([
    { model: "a", ...tower },
    { model: "b", ...tower },
  ])
})

it("reads pictures of 128 x 128 as 16 rows, and adapts every matrix of the decoder", () => {
  const { vision_config: tower } = json("config.json")
  const strides = tower.blocks.map(({ stride }: { readonly stride: number }) => stride)
  expect(tower.image_size / strides.reduce((all: number, one: number) => all * one, 2)).toBe(4)
  expect(json("preprocessor_config.json").pad_size).toEqual({ height: 128, width: 128 })
  expect(json("adapter_config.json").target_modules).toHaveLength(7)
})
