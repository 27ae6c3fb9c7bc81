import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { afterAll, describe, expect, test } from "vitest"
import { embedTexts } from "../chat-format/embed-texts.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import type { EncoderOptions } from "../worker/protocol.ts"
import type { EmbedJobEvent, EncoderInput } from "./embed-job.ts"
import { folderEncoder } from "./families.ts"
import { openEncoderEngine } from "./open-encoder-engine.ts"
import { spaceDimensions, stackedRotations } from "./stacked-rotations.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-encoders-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** See fixtures/make-encoders.py. */
interface Expected {
  readonly texts?: readonly {
    readonly text: string
    readonly ids: readonly number[]
    readonly vector: readonly number[]
  }[]
  readonly pooled?: Readonly<Record<string, readonly (readonly number[])[]>>
  readonly pairs?: readonly {
    readonly ids: readonly number[]
    readonly secondFrom: number
    readonly logit: number
  }[]
}

const expectedOf = (name: string) =>
  JSON.parse(readFileSync(join(encoderFolder(name), "expected.json"), "utf8")) as Expected

const open = (path: string, precision: "fp32" | "int8" = "fp32", encoder: EncoderOptions = {}) =>
  openEncoderEngine(
    {
      kind: "encoder",
      path,
      precision,
      encoder,
      graphs: join(root, "graphs"),
      threads: 1,
      slots: 1,
      kvBytes: 0,
      prefixCacheBytes: 0,
      speculation: false,
    },
    () => {},
  )

/** What an encoder makes of texts in one request. */
const outputsOf = async (
  engine: Awaited<ReturnType<typeof open>>,
  texts: readonly EncoderInput[],
): Promise<readonly Float32Array[]> => {
  const vectors: Float32Array[] = []
  const job = engine.start({ texts }, (event: EmbedJobEvent) => {
    if (event.type === "vector") vectors[event.index] = event.vector
  })
  const running = { id: 1, account: "a", priority: "realtime", job } as const
  let ended = await engine.runner.step([running], ([first]) => first!)
  while (!ended.length) ended = await engine.runner.step([running], ([first]) => first!)
  expect(ended[0]!.cause).toBeUndefined()
  return vectors
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0)
const cosine = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))

const maps = new Map<number, Float32Array>()
/** The model's own vector of one of the space. */
const unmapped = (vector: Float32Array, width: number): readonly number[] => {
  const map = maps.get(width) ?? stackedRotations(width, spaceDimensions)
  maps.set(width, map)
  return Array.from({ length: width }, (_, column) =>
    vector.reduce((sum, value, row) => sum + value * map[row * width + column]!, 0),
  )
}

test("the window is the shortest that any file names", () => {
  expect(folderEncoder(encoderFolder("bert")).config.maxTokens).toBe(64)
  expect(folderEncoder(encoderFolder("xlm-roberta")).config.maxTokens).toBe(80)
})

const idsOf = (ids: readonly number[]) => Int32Array.from(ids)

describe.each(["bert", "bert-int8", "xlm-roberta", "roberta", "modernbert"])(
  "the tiny %s",
  (name) => {
    const { texts, pooled } = expectedOf(name)

    test("makes the vectors of sentence-transformers, in company and alone", async () => {
      const engine = await open(encoderFolder(name))
      const inputs = texts!.map(({ ids }) => idsOf(ids))
      const together = await outputsOf(engine, inputs)
      const { width } = engine.info
      for (const [i, { vector }] of texts!.entries()) {
        expect(width).toBe(vector.length)
        expect(cosine(unmapped(together[i]!, width), vector)).toBeGreaterThan(1 - 1e-6)
        const [alone] = await outputsOf(engine, [inputs[i]!])
        const gap = Math.max(...alone!.map((value, at) => Math.abs(value - together[i]![at]!)))
        expect(gap).toBeLessThan(1e-5)
      }
      await engine.close()
    })

    test("is given the tokens of transformers", async () => {
      const tokenizer = Tokenizer.fromFile(join(encoderFolder(name), "tokenizer.json"))
      const found = await embedTexts(tokenizer, {
        texts: texts!.map(({ text }) => text),
        instruction: "",
        truncate: "END",
        maxTokens: 1_000,
      })
      expect("texts" in found && found.texts.map(({ ids }) => [...ids])).toEqual(
        texts!.map(({ ids }) => ids),
      )
    })

    test("loses little in 8 bits", async () => {
      const engine = await open(encoderFolder(name), "int8")
      const vectors = await outputsOf(
        engine,
        texts!.map(({ ids }) => idsOf(ids)),
      )
      for (const [i, { vector }] of texts!.entries())
        expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(0.995)
      await engine.close()
    })

    test.each(Object.keys(pooled!))("pools by %s as sentence-transformers does", async (mode) => {
      const path = join(root, `${name}-${mode}`)
      cpSync(encoderFolder(name), path, { recursive: true })
      mkdirSync(join(path, "1_Pooling"), { recursive: true })
      writeFileSync(join(path, "1_Pooling/config.json"), JSON.stringify({ pooling_mode: mode }))
      const engine = await open(path)
      const vectors = await outputsOf(
        engine,
        texts!.map(({ ids }) => idsOf(ids)),
      )
      for (const [i, vector] of pooled![mode]!.entries())
        expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
      await engine.close()
    })
  },
)

describe.each(["bert", "xlm-roberta", "modernbert"])("the tiny %s classifier", (name) => {
  test("makes the logits of transformers, in company and alone", async () => {
    const { pairs } = expectedOf(`${name}-classifier`)
    const engine = await open(encoderFolder(`${name}-classifier`))
    expect(engine.info).toMatchObject({ output: "score", width: 1 })
    const inputs = pairs!.map(({ ids, secondFrom }) => ({ ids: idsOf(ids), secondFrom }))
    const together = await outputsOf(engine, inputs)
    for (const [i, { logit }] of pairs!.entries()) {
      expect(Math.abs(together[i]![0]! - logit)).toBeLessThan(1e-5)
      const [alone] = await outputsOf(engine, [inputs[i]!])
      expect(Math.abs(alone![0]! - logit)).toBeLessThan(1e-5)
    }
    await engine.close()
  })
})
