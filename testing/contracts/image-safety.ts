import { Effect, Exit, type Scope } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { ImageSafety } from "../../core/ports/image.ts"
import { runs } from "../property.ts"

export interface OpenedImageSafety {
  readonly safety: ImageSafety
  readonly harmless: { readonly prompt: string; readonly picture: Uint8Array }
  readonly refused: {
    readonly prompt: { readonly text: string; readonly category: string }
    /** Absent where no picture at hand is refused. */
    readonly picture?: Uint8Array
  }
}

/** Letters of all scripts, controls, marks and halves of pairs. */
const anyText = fc
  .array(fc.oneof(fc.nat(0x2ff), fc.nat(0x10ffff)), { maxLength: 300 })
  .map((codes) => String.fromCodePoint(...codes))

type Cases = Readonly<
  Record<string, (opened: OpenedImageSafety) => Effect.Effect<void, unknown, Scope.Scope>>
>

const promptCases: Cases = {
  "says nothing of what is harmless": ({ safety, harmless }) =>
    Effect.gen(function* () {
      expect(yield* safety.prompt(harmless.prompt)).toBeUndefined()
      expect(yield* safety.prompt("")).toBeUndefined()
    }),

  "names the category of a prompt, with other words around it": ({ safety, refused }) =>
    Effect.gen(function* () {
      const { text, category } = refused.prompt
      for (const prompt of [text, `a painting: ${text}, oil on canvas`])
        expect(yield* safety.prompt(prompt)).toBe(category)
    }),

  "keeps many prompts at once apart": ({ safety, harmless, refused }) =>
    Effect.gen(function* () {
      const prompts = Array.from({ length: 40 }, (_, n) =>
        n % 2 === 0 ? refused.prompt.text : harmless.prompt,
      )
      const found = yield* Effect.forEach(prompts, safety.prompt, { concurrency: "unbounded" })
      expect(found).toEqual(
        prompts.map((_, n) => (n % 2 === 0 ? refused.prompt.category : undefined)),
      )
    }),
}

const pictureCases: Cases = {
  "lets a harmless picture pass, and leaves its bytes alone": ({ safety, harmless }) =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from(harmless.picture)
      expect(yield* safety.picture(bytes)).toBeUndefined()
      expect(yield* safety.picture(bytes)).toBeUndefined()
      expect(Buffer.from(harmless.picture).equals(bytes)).toBe(true)
    }),

  "lets nothing pass that it can't read": ({ safety, harmless }) =>
    Effect.gen(function* () {
      const unread = [new Uint8Array(), Buffer.from("no picture"), harmless.picture.subarray(0, 5)]
      for (const bytes of unread) {
        const exit = yield* Effect.exit(safety.picture(bytes))
        expect(Exit.isFailure(exit) || typeof exit.value === "string").toBe(true)
      }
    }),
}

/**
 * What every ImageSafety does. `open` is called for every case. A category is a word of lower case,
 * as it is a label of metrics and part of what clients read.
 */
export const imageSafetyContract = (
  name: string,
  open: Effect.Effect<OpenedImageSafety, unknown, Scope.Scope>,
): void => {
  const run = (work: Cases[string]) => Effect.runPromise(Effect.scoped(Effect.flatMap(open, work)))
  describe(`image safety contract: ${name}`, () => {
    for (const [title, work] of Object.entries({ ...promptCases, ...pictureCases }))
      it(title, () => run(work))

    it("names the category of a picture", ({ skip }) =>
      run(({ safety, refused: { picture } }) =>
        picture === undefined
          ? Effect.sync(skip)
          : Effect.map(safety.picture(picture), (found) => expect(found).toMatch(/^[a-z_]+$/)),
      ))

    it("has a verdict on any text", () =>
      run(({ safety }) =>
        Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(anyText, async (text) => {
              const found = await Effect.runPromise(safety.prompt(text))
              expect(found ?? "none").toMatch(/^[a-z_]+$/)
              expect(await Effect.runPromise(safety.prompt(text))).toBe(found)
            }),
            { numRuns: runs(60) },
          ),
        ),
      ))
  })
}
