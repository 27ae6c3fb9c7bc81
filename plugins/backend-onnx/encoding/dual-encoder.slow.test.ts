import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import embedTextsInPool from "../chat-format/embed-texts-job.ts"
import { expectedTexts, towerFolder } from "../testing/fixtures.ts"
import { cosine, openEncoder, outputsOf, unmapped } from "../testing/open-encoder.ts"
import { folderEncoder } from "./families.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-dual-encoders-"))
afterAll(() => rmSync(graphs, { recursive: true, force: true }))

describe.each(["clip", "siglip", "siglip2"])("the text tower of the tiny %s", (name) => {
  const texts = expectedTexts(name)

  test("makes the vectors of transformers, in company and alone", async () => {
    const engine = await openEncoder(towerFolder(name), graphs)
    const inputs = texts.map(({ ids }) => Int32Array.from(ids))
    const together = await outputsOf(engine, inputs)
    for (const [i, { vector }] of texts.entries()) {
      expect(engine.info.width).toBe(vector.length)
      expect(cosine(unmapped(together[i]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
      const [alone] = await outputsOf(engine, [inputs[i]!])
      const gap = Math.max(...alone!.map((value, at) => Math.abs(value - together[i]![at]!)))
      expect(gap).toBeLessThan(1e-5)
    }
    await engine.close()
  })

  test("loses little in 8 bits", async () => {
    const engine = await openEncoder(towerFolder(name), graphs, { precision: "int8" })
    const vectors = await outputsOf(
      engine,
      texts.map(({ ids }) => Int32Array.from(ids)),
    )
    for (const [i, { vector }] of texts.entries())
      expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(0.995)
    await engine.close()
  })

  test("is given the tokens of transformers", async () => {
    const request = { instruction: "", truncate: "END", maxTokens: 1_000, window: 1_000 } as const
    const [found] = await embedTextsInPool({
      folder: towerFolder(name),
      requests: [{ ...request, texts: texts.map(({ text }) => text) }],
    })
    expect(
      "texts" in found! && found.texts.map(({ windows }) => windows.map(({ ids }) => [...ids])),
    ).toEqual(texts.map(({ ids }) => [ids]))
  })
})

test("SigLIP's padding is on the side that the tokenizer's files say", async () => {
  const path = join(graphs, "left")
  cpSync(towerFolder("siglip2"), path, { recursive: true })
  const [config, expected] = ["tokenizer_config.json", "expected.json"].map(
    (name) => JSON.parse(readFileSync(join(path, name), "utf8")) as object,
  ) as [object, { readonly paddedLeft: readonly (readonly number[])[] }]
  const texts = expectedTexts("siglip2")
  for (const padding_side of ["left", undefined]) {
    writeFileSync(join(path, "tokenizer_config.json"), JSON.stringify({ ...config, padding_side }))
    const engine = await openEncoder(path, graphs)
    const inputs = texts.map(({ ids }) => Int32Array.from(ids))
    const vectors = await outputsOf(engine, inputs)
    for (const [i, vector] of expected.paddedLeft.entries())
      expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
    await engine.close()
  }
})

test("another pooling than its own is refused", () => {
  expect(() => folderEncoder(towerFolder("clip"), { pooling: "mean" })).toThrow(
    /config.json: a model of the family 'clip' is pooled in its own way. Remove 'pooling'/,
  )
})
