import { expect, test } from "vitest"
import { ggufLanguage } from "../tokenizer/gguf-language.ts"
import { openGguf } from "../weights/gguf-file.ts"
import { makeConstraints } from "./constraints.ts"
import { byteVocabulary, type GrammarVocabulary, grammarVocabulary } from "./grammar-vocabulary.ts"
import { Matchers } from "./matchers.ts"
import { inlineConstraints } from "./testing/inline-constraints.ts"
import { guardedSchemas, keptSchemas } from "./testing/schemas.ts"
import { independentValidator } from "./testing/validator.ts"
import { closingOf, randomFrom, textOf, walk } from "./testing/walk.ts"

const path = process.env.RAKIT_TEST_CHAT_MODEL

const realVocabulary = (): GrammarVocabulary => {
  const { metadata } = openGguf(path!).header
  const size = (metadata.get("tokenizer.ggml.tokens") as readonly string[]).length
  const { vocabulary, endTokens } = ggufLanguage(metadata, size)
  return grammarVocabulary(size, (id) => vocabulary.bytesOf(id), endTokens)
}

test.skipIf(!path)(
  "with a real vocabulary too, whatever is chosen under the mask validates, in a thread as inline",
  { timeout: 600_000 },
  async () => {
    const vocabulary = realVocabulary()
    const threaded = makeConstraints(vocabulary)
    const inline = inlineConstraints(vocabulary)
    for (const [i, schema] of [...keptSchemas, ...guardedSchemas].entries()) {
      const validates = independentValidator(schema)
      const texts = [threaded, inline].map((constraints) => {
        const constraint = constraints.open({ kind: "schema", schema })
        const written = walk(constraint, vocabulary, randomFrom(i), 40)
        const way = constraint.isComplete() ? [] : closingOf(constraint, 800)
        constraint.release()
        expect(way, `${JSON.stringify(schema)} after ${textOf(vocabulary, written)}`).toBeDefined()
        return textOf(vocabulary, [...written, ...way!])
      })
      expect(texts[0]).toBe(texts[1])
      expect(validates(JSON.parse(texts[0]!)), texts[0]).toBe(true)
    }
    await threaded.close()
  },
)

test("memory stays flat over 2,000 schemas", { timeout: 600_000 }, () => {
  const matchers = new Matchers(byteVocabulary())
  const sizes: number[] = []
  for (let i = 0; i < 2_000; i++) {
    const schema = {
      type: "object",
      properties: {
        [`name${i}`]: { type: "string", pattern: `^[a-z]{1,${(i % 30) + 1}}$` },
        n: { type: "integer", maximum: i },
      },
      required: [`name${i}`],
    }
    matchers.add(i, { kind: "schema", schema })
    for (const byte of Buffer.from(`{"name${i}": "a`)) {
      matchers.mask(i)
      matchers.accept(i, byte)
    }
    matchers.release(i)
    if (i % 500 === 499) sizes.push(matchers.memoryBytes)
  }
  expect(sizes.at(-1)! - sizes[0]!).toBeLessThan(8 * 2 ** 20)
  expect(sizes.at(-1)!).toBeLessThan(128 * 2 ** 20)
})
