import { expect, test } from "vitest"
import { ggufLanguage } from "../tokenizer/gguf-language.ts"
import { openGguf } from "../weights/gguf-file.ts"
import { makeConstraints } from "./constraints.ts"
import {
  bytesOfToken,
  byteVocabulary,
  type GrammarVocabulary,
  grammarVocabulary,
  isAllowed,
} from "./grammar-vocabulary.ts"
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

test.skipIf(!path)(
  "where finished values are checked, a token is allowed exactly if its bytes are",
  { timeout: 600_000 },
  () => {
    const vocabulary = realVocabulary()
    const tokens = inlineConstraints(vocabulary)
    const bytes = inlineConstraints(byteVocabulary())
    const finishing = Array.from({ length: vocabulary.ends.length }, (_, id) => id).filter((id) =>
      /[",\]}]|[0-9el]$/.test(Buffer.from(bytesOfToken(vocabulary, id)).toString("latin1")),
    )
    for (const [i, schema] of guardedSchemas.entries()) {
      const random = randomFrom(i)
      const constraint = tokens.open({ kind: "schema", schema })
      const written = walk(constraint, vocabulary, random, 8 + i * 2)
      const text = Buffer.concat(written.map((token) => bytesOfToken(vocabulary, token)))
      for (let n = 0; n < 150; n++) {
        const token = finishing[Math.floor(random() * finishing.length)]!
        const single = bytes.open({ kind: "schema", schema })
        for (const byte of text) single.accept(byte)
        let isFitting = true
        for (const byte of bytesOfToken(vocabulary, token)) {
          isFitting &&= isAllowed(single.mask(), byte)
          if (isFitting) single.accept(byte)
        }
        single.release()
        const place = JSON.stringify([schema, `${text}`, textOf(vocabulary, [token])])
        expect(isAllowed(constraint.mask(), token), place).toBe(isFitting)
      }
      constraint.release()
    }
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
