import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import { embedTexts } from "./embed-texts.ts"
import { tokenizerIn } from "./embed-texts-job.ts"

const tokenizer = tokenizerIn(encoderFolder("bert-classifier"))
const words = (most: number) => fc.array(fc.constantFrom("sea", "a", "river"), { maxLength: most })

test("windows hold all of instruction and text, whatever their lengths, none at all too", async () => {
  const special = (await tokenizer.encode("a", null, { addSpecialTokens: true })).getIds()
  await fc.assert(
    fc.asyncProperty(
      words(20),
      fc.oneof(fc.constant([]), words(30)),
      fc.integer({ min: 3, max: 16 }),
      async (instruction, text, window) => {
        const plain = await tokenizer.encode(text.join(" "), null, { addSpecialTokens: false })
        const own = text.length > 0 ? plain.getIds() : []
        const ids = Int32Array.from([special[0]!, ...own, special.at(-1)!])
        const request = {
          ...{ texts: [ids], instruction: instruction.join(" "), truncate: "END" as const },
          ...{ maxTokens: 1_000, window },
        }
        const result = await embedTexts(tokenizer, request)
        if (!("texts" in result)) throw new Error("refused")
        const { windows, tokens } = result.texts[0]!
        for (const { ids } of windows) expect(ids.length).toBeLessThanOrEqual(window)
        expect(windows.length).toBeLessThanOrEqual(tokens)
        expect(windows.at(-1)!.ids.at(-2) ?? special[0]).toBe(
          own.at(-1) ?? windows.at(-1)!.ids.at(-2),
        )
      },
    ),
    { numRuns: runs(500) },
  )
})

test("an instruction that fills the window beside a text without tokens is one window", async () => {
  const instruction = Array(6).fill("sea").join(" ")
  const { length } = (
    await tokenizer.encode(instruction, null, { addSpecialTokens: false })
  ).getIds()
  const ids = (await tokenizer.encode("a", null, { addSpecialTokens: true })).getIds()
  const texts = [Int32Array.from([ids[0]!, ids.at(-1)!])]
  const window = length + 2
  const request = { texts, instruction, truncate: "END" as const, maxTokens: 100, window }
  const result = await embedTexts(tokenizer, request)
  if (!("texts" in result)) throw new Error("refused")
  expect(result.texts[0]).toMatchObject({ tokens: window, truncated: false })
  expect(result.texts[0]!.windows.length).toBe(1)
})
