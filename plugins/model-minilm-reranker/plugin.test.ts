import "reflect-metadata/lite"
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

const weights = join(import.meta.dirname, "weights/")
const json = (name: string) => JSON.parse(readFileSync(join(weights, name), "utf8"))

const offered = (settings: object) => {
  const container = root.createChildContainer()
  plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings) as never).register?.(container)
  return resolveAll(container, Tokens.models)
}

it("brings svc-rerank, or the name and price that the settings say", () => {
  expect(offered({})).toMatchObject([
    { id: "svc-rerank", task: "rerank", price: { searchUnit: 2.5 } },
  ])
  expect(offered({})[0]!.sources).toEqual([{ url: `file:${weights}` }])
  expect(offered({ id: "minilm", price: { searchUnit: 1 } })).toMatchObject([
    { id: "minilm", task: "rerank", price: { searchUnit: 1 } },
  ])
})

interface Tensor {
  readonly dtype: string
  readonly shape: readonly number[]
}

/** The header of a safetensors file. */
const tensorsOf = (path: string): Readonly<Record<string, Tensor>> => {
  const file = openSync(path, "r")
  const length = Buffer.alloc(8)
  readSync(file, length)
  const header = Buffer.alloc(Number(length.readBigUInt64LE()))
  readSync(file, header)
  closeSync(file)
  const { __metadata__, ...tensors } = JSON.parse(header.toString())
  return tensors
}

it("has the weights of a BERT classifier with one label, matrices in 8 bits", () => {
  const config = json("config.json")
  expect(config).toMatchObject({
    architectures: ["BertForSequenceClassification"],
    id2label: { 0: "relevant" },
  })
  const path = join(weights, "model.safetensors")
  expect(statSync(path).size).toBeLessThan(24e6)
  const tensors = tensorsOf(path)
  const width = config.hidden_size
  expect(tensors["classifier.weight"]).toMatchObject({ dtype: "F32", shape: [1, width] })
  const bytes = Object.entries(tensors).filter(([, { dtype }]) => dtype === "I8")
  expect(bytes).toHaveLength(config.num_hidden_layers * 6 + 3)
  for (const [name, { shape }] of bytes)
    expect(tensors[`${name}_scale`]).toMatchObject({ dtype: "F32", shape: [shape[0], 1] })
})
