import { Effect, type Scope } from "effect"
import { describe, it } from "vitest"
import type { Storage } from "../../core/ports/storage.ts"
import { storageFailureCases, storageFullCases } from "./storage/failures.ts"
import { storageKeyCases } from "./storage/keys.ts"
import { storageModelCases } from "./storage/model.ts"
import { storageReadCases } from "./storage/reads.ts"

export interface OpenedStorage {
  /** An empty storage. */
  readonly storage: Storage
  /** Has room for 64 KiB but not for 4 MiB. Absent where that can't be arranged. */
  readonly nearlyFull?: Storage
}

export type StorageCases = Readonly<
  Record<string, (opened: OpenedStorage) => Effect.Effect<void, unknown, Scope.Scope>>
>

/**
 * What every Storage does, beyond the port's own words:
 *
 * - A range that lies beyond the end, or ends before it starts, is empty; one that reaches beyond
 *   the end is cut there. (HTTP's 416 is for the endpoint to say, from `stat`.)
 * - A reader gets one version from its first byte to its last, or fails; never a mix.
 * - The etag is stable until the next put, and changes when the content changes.
 * - `a` and `a/b` are two keys like any others.
 * - `list` takes any text as its prefix and goes by code unit of the keys, in a stream; blobs may
 *   come and go meanwhile.
 * - A text that is no blob key fails with PortError; as a prefix it matches nothing.
 *
 * `open` is called for every case and gives a new, empty storage.
 */
export const storageContract = (
  name: string,
  open: Effect.Effect<OpenedStorage, unknown, Scope.Scope>,
): void => {
  const run = (cases: StorageCases, isOffered = (_: OpenedStorage): boolean => true) => {
    for (const [title, work] of Object.entries(cases))
      it(title, ({ skip }) =>
        Effect.runPromise(
          Effect.scoped(
            Effect.flatMap(open, (opened) =>
              isOffered(opened) ? work(opened) : Effect.sync(skip),
            ),
          ),
        ),
      )
  }
  describe(`storage contract: ${name}`, () => {
    describe("reading", () => run(storageReadCases))
    describe("failures", () => run(storageFailureCases))
    describe("a full disk", () =>
      run(storageFullCases, ({ nearlyFull }) => nearlyFull !== undefined))
    describe("keys", () => run(storageKeyCases))
    describe("against a model", () => run(storageModelCases))
  })
}
