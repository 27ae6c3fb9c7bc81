import { Effect, Exit, Scope, Stream } from "effect"
import { afterAll, beforeEach, expect, vi } from "vitest"
import {
  apiError,
  type Clock,
  type Finding,
  type Ledger,
  type StoredFile,
} from "../../../core/index.ts"
import { batchCheck } from "../check/batch-check.ts"
import type { CheckDeps } from "../check/checked-batch.ts"
import { partCheck } from "../check/part-check.ts"
import type { BatchTable } from "../tables.ts"
import { keepWorking } from "../work/worker.ts"
import { openWorkFixture } from "./work-fixture.ts"

const run = Effect.runPromise
/** Lines of the batch. */
export const lines = 12

export const textOf = ({ subject, problem, remedy = "-" }: Finding): string =>
  `${subject}: ${problem} (${remedy})`

/** A completed batch with answers and failures, and the checks over it. */
export const openCheckFixture = async () => {
  const time = { aheadMs: 0 }
  const clock: Clock = {
    nowMs: () => Date.now() + time.aheadMs,
    monotonicMs: () => performance.now(),
  }
  const work = await openWorkFixture({
    clock,
    run: (n) =>
      n % 4 === 1 ? Effect.fail(apiError("invalid_request_error")) : Effect.succeed({ n }),
  })
  afterAll(work.close)
  beforeEach(() => {
    time.aheadMs = 0
  })
  const children: Ledger["children"] = (parents) =>
    Effect.promise(async () => {
      const calls = await work.calls()
      return new Map(
        parents.map((parent) => {
          const own = calls.filter((call) => call.parent === parent)
          return [
            parent,
            {
              open: own.filter(({ state }) => state === "open").length,
              costMicros: own
                .filter(({ state }) => state === "settled")
                .reduce((sum, { cost }) => sum + cost, 0n),
            },
          ]
        }),
      )
    })
  const checked: CheckDeps = { ...work.deps, ledger: () => ({ children }) as Ledger }
  const scope = Scope.makeUnsafe()
  const batch = await work.create("ada", lines)
  Effect.runFork(Effect.forkScoped(keepWorking(work.deps)).pipe(Scope.provide(scope)))
  await vi.waitFor(async () => expect((await work.batch(batch)).status).toBe("completed"), {
    timeout: 15_000,
  })
  await run(Scope.close(scope, Exit.void))
  const row = await work.batch(batch)

  const findings = async (
    looked: (things: number) => void = () => {},
    fixture = checked,
  ): Promise<readonly Finding[]> => [
    ...(await run(Stream.runCollect(batchCheck(fixture).findings(looked)))),
    ...(await run(Stream.runCollect(partCheck(fixture).findings(looked)))),
  ]
  const subject = `batch ${batch} of account ada (live)`
  const texts = async () => (await findings()).map(textOf)
  const repairAll = async () => {
    for (const { repair } of await findings())
      for (let time = 0; repair && time < 2; time++) await run(repair)
  }
  const change = (set: Partial<Record<keyof BatchTable, unknown>>) =>
    work.db
      .updateTable("batches_batch")
      .set(set as never)
      .where("id", "=", batch)
      .execute()
  const put = (key: string, text: string) =>
    run(work.deps.storage.put(key, Stream.make(Buffer.from(text)), 2 ** 20))
  const fileOf = async (id: string | null): Promise<StoredFile> =>
    (await work.files.rows()).find((file) => file.id === id)!
  return {
    ...{ work, checked, batch, row, time, children, subject },
    ...{ findings, texts, repairAll, change, put, fileOf },
  }
}
