import { Effect, Stream } from "effect"
import { sql } from "kysely"
import { beforeEach, expect, it } from "vitest"
import type { Finding, Ledger } from "../../../core/index.ts"
import { sendOutdated } from "../ingest/upkeep.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import type { CheckDeps } from "./checked-document.ts"
import { documentCheck } from "./document-check.ts"
import { orphanCheck } from "./orphan-check.ts"

const ingest = useIngest()
const hourMs = 3_600_000
const live = { account: "acct_1", mode: "live" } as const

let id: string
let deps: CheckDeps
/** A ready file, and no job. */
beforeEach(async () => {
  await ingest.open()
  id = await ingest.test.upload(lines(5))
  await ingest.run(id)
  const children: Ledger["children"] = (parents) =>
    Effect.promise(async () => {
      const calls = await ingest.test.calls()
      return new Map(
        parents.map((parent) => {
          const own = calls.filter((call) => call.parent === parent)
          const open = own.filter(({ state }) => state === "open").length
          return [parent, { open, costMicros: own.reduce((sum, { cost }) => sum + cost, 0n) }]
        }),
      )
    })
  Object.assign(ingest.test.deps.queue, { held: () => Effect.succeed(new Set()) })
  deps = { ...ingest.test.deps, ledger: () => ({ children }) as Ledger }
})

const execute = (query: ReturnType<typeof sql>) => query.execute(deps.database.queries())
const findings = (): Promise<readonly Finding[]> =>
  Effect.runPromise(
    Effect.map(
      Effect.all(
        [documentCheck(deps), orphanCheck(deps)].map((check) =>
          Stream.runCollect(check.findings(() => {})),
        ),
      ),
      (found) => found.flat(),
    ),
  )
/** What is found is what `problem` says; its repair leaves nothing to find. */
const expectRepaired = async (problem: RegExp) => {
  const found = await findings()
  expect(found.map((one) => one.problem)).toEqual([expect.stringMatching(problem)])
  await Effect.runPromise(found[0]!.repair!)
  expect(await findings()).toEqual([])
}
const expectFound = async (problem: RegExp) =>
  expect(await findings()).toEqual([
    { subject: expect.stringContaining(id), problem: expect.stringMatching(problem) },
  ])

it("finds nothing where all is well, and counts the documents", async () => {
  let looked = 0
  const count = (things: number) => {
    looked += things
  }
  await Effect.runPromise(Stream.runDrain(documentCheck(deps).findings(count)))
  expect([looked, await findings()]).toEqual([1, []])
})

it("has chunks without a vector embedded again", async () => {
  await execute(sql`DELETE FROM retrieval_vector WHERE idx IN (1, 4)`)
  await expectRepaired(/^2 chunks without a vector$/)
  expect(await Effect.runPromise(sendOutdated(ingest.test.deps))).toBe(1)
  await ingest.run(id)
  await ingest.expectReady(id, 5)
  expect(await findings()).toEqual([])
})

it("deletes vectors without a chunk, and those of another space", async () => {
  await execute(
    sql`INSERT INTO retrieval_vector SELECT document_no, 7, space, vector FROM retrieval_vector WHERE idx = 0`,
  )
  await expectRepaired(/^1 vector without a chunk$/)
  await execute(
    sql`INSERT INTO retrieval_vector SELECT document_no, idx, 'old', vector FROM retrieval_vector WHERE idx < 2`,
  )
  await expectRepaired(/^2 vectors of another embedding space/)
  await ingest.expectReady(id, 5)
})

it("names a document that lacks a chunk", async () => {
  await execute(sql`DELETE FROM retrieval_chunk WHERE idx = 4`)
  await execute(sql`DELETE FROM retrieval_vector WHERE idx = 4`)
  await expectFound(/^it has 4 chunks instead of 5/)
})

it("deletes what is left of a failed file, and of no document at all", async () => {
  const failed = await ingest.test.upload("!")
  await ingest.run(failed)
  const { no } = (await ingest.test.document(failed))!
  await execute(
    sql`INSERT INTO retrieval_chunk SELECT ${no}, idx, page, start_at, end_at, text, words FROM retrieval_chunk`,
  )
  await expectRepaired(/^it failed, and parts of its text/)
  await execute(
    sql`INSERT INTO retrieval_vector SELECT 999999, idx, space, vector FROM retrieval_vector`,
  )
  await expectRepaired(/no such document/)
})

it("removes a document without a file", async () => {
  await execute(sql`DELETE FROM test_file`)
  await expectRepaired(/^its file does not exist$/)
  expect(await ingest.test.document(id)).toMatchObject({ state: "removed" })
})

it("has the file say what its document is", async () => {
  await Effect.runPromise(deps.files.mark(live, id, { status: "processing" }))
  await expectRepaired(/^it is ready, and its file says processing$/)
  await ingest.expectReady(id, 5)
})

it("takes over what the ledger says, and gives back what is held", async () => {
  await execute(sql`UPDATE retrieval_document SET cost_micros = 1`)
  await expectRepaired(/^it says that it cost Rp0.000001; the ledger says Rp0.015$/)
  await execute(sql`INSERT INTO test_call VALUES ('left', ${id}, 'open', 5, 0, 0)`)
  expect(await findings()).toEqual([])
  ingest.test.clock.advance(hourMs)
  await expectRepaired(/still holds money$/)
})

it("names what nobody works on, and what nobody has ended", async () => {
  const waiting = await ingest.test.upload(lines(1))
  expect(await findings()).toEqual([])
  ingest.test.clock.advance(hourMs)
  expect((await findings()).map(({ problem }) => problem)).toEqual([
    "it is waiting, and no job works on it",
  ])
  Object.assign(deps.queue, { held: () => Effect.succeed(new Set([waiting])) })
  expect(await findings()).toEqual([])
  ingest.test.clock.advance(24 * hourMs)
  expect((await findings()).map(({ problem }) => problem)).toEqual([
    "it is still waiting, but its 24 hours are over: no worker has ended it",
  ])
})

it("what a worker changes between two looks is no finding", async () => {
  await execute(sql`DELETE FROM retrieval_vector WHERE idx = 1`)
  const { find } = deps.files
  Object.assign(deps.files, {
    find: (...of: Parameters<typeof find>) =>
      Effect.tap(find(...of), () =>
        Effect.promise(() => execute(sql`UPDATE retrieval_document SET epoch = epoch + 1`)),
      ),
  })
  expect(await findings()).toEqual([])
})
