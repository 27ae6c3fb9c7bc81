import { Effect } from "effect"
import fc from "fast-check"
import { expect } from "vitest"
import type { Storage } from "../../../core/ports/storage.ts"
import type { StorageCases } from "../storage.ts"
import { getText, listAll, listKeys, putText } from "./bytes.ts"

const segment = fc.constantFrom("a", "b", "a.b", "a-", "B", "0", "..a")
const key = fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => segments.join("/"))
const chunks = fc.array(fc.string({ unit: "binary-ascii", maxLength: 40 }), { maxLength: 4 })

type Step =
  | { readonly do: "put"; readonly key: string; readonly chunks: readonly string[] }
  | { readonly do: "remove"; readonly key: string }
  | { readonly do: "list"; readonly prefix: string }
  | {
      readonly do: "get"
      readonly key: string
      readonly from: number
      readonly length: number | undefined
    }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("put" as const), key, chunks }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), key }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("list" as const),
      prefix: key.chain((text) => fc.nat(text.length).map((n) => text.slice(0, n))),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("get" as const),
      key,
      from: fc.nat(120),
      length: fc.option(fc.nat(120), { nil: undefined }),
    }),
  },
)

const rangeOf = ({
  from,
  length,
}: {
  readonly from: number
  readonly length: number | undefined
}) => ({ from, ...(length !== undefined && { to: from + length - 1 }) })

const keysOf = (model: ReadonlyMap<string, string>, prefix: string) =>
  [...model.keys()].filter((known) => known.startsWith(prefix)).sort()

const play = (storage: Storage, model: Map<string, string>, move: Step) =>
  Effect.gen(function* () {
    if (move.do === "put") {
      const text = move.chunks.join("")
      expect((yield* putText(storage, move.key, ...move.chunks)).bytes).toBe(text.length)
      model.set(move.key, text)
    } else if (move.do === "remove") {
      yield* storage.remove(move.key)
      model.delete(move.key)
    } else if (move.do === "list")
      expect(yield* listKeys(storage, move.prefix)).toEqual(keysOf(model, move.prefix))
    else {
      const known = model.get(move.key)
      const range = rangeOf(move)
      const got = yield* getText(storage, move.key, range).pipe(
        Effect.catchTag("BlobMissing", () => Effect.succeed(undefined)),
      )
      expect(got).toBe(known?.slice(range.from, range.to === undefined ? undefined : range.to + 1))
    }
  })

const playAll = (storage: Storage, moves: readonly Step[]) =>
  Effect.gen(function* () {
    const model = new Map<string, string>()
    for (const { key: leftover } of yield* listAll(storage)) yield* storage.remove(leftover)
    for (const move of moves) yield* play(storage, model, move)
    expect(yield* listKeys(storage)).toEqual(keysOf(model, ""))
    for (const [known, text] of model) expect(yield* getText(storage, known)).toBe(text)
  })

export const storageModelCases: StorageCases = {
  "does what a Map would do, over any sequence of puts, removes, lists and ranges": ({ storage }) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), (moves) =>
          Effect.runPromise(playAll(storage, moves)),
        ),
        { numRuns: 60 },
      ),
    ),
}
