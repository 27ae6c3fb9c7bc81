import { Effect } from "effect"
import { sql } from "kysely"
import { expect, it } from "vitest"
import { PortError } from "../../../core/index.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { sweepRemoved } from "./sweep-removed.ts"

const ingest = useIngest()
const { open, run, remove } = ingest

const removedFile = async (): Promise<string> => {
  const id = await ingest.test.upload(lines(2))
  await run(id)
  await remove(id)
  return id
}
const sweep = () => Effect.runPromise(sweepRemoved(ingest.test.deps))

it("a deleted file leaves nothing, and caches hear of it", async () => {
  await open()
  const id = await ingest.test.upload(lines(3))
  await run(id)
  await remove(id)
  expect(await ingest.test.document(id)).toMatchObject({ state: "removed" })
  expect(await ingest.test.version()).toBe(2n)
  await Effect.runPromise(sweepRemoved(ingest.test.deps))
  expect([
    await ingest.test.document(id),
    await ingest.test.chunks(),
    await ingest.test.vectors(),
  ]).toEqual([undefined, [], []])
  await run(id)
})

it("goes on past a document that fails, and says so once a turn", async () => {
  await open()
  const { deps, document, log } = ingest.test
  const [first, second, third] = [await removedFile(), await removedFile(), await removedFile()]
  const broken = new Set([(await document(first))!.no, (await document(second))!.no])
  const { remove: removeVectors } = deps.vectors
  Object.assign(deps.vectors, {
    remove: (...of: Parameters<typeof removeVectors>) =>
      broken.has(of[0])
        ? Effect.fail(new PortError({ port: "database", message: "it takes too long" }))
        : removeVectors(...of),
  })
  expect(await sweep()).toBe(1)
  expect([await document(third), (await document(first))?.state]).toEqual([undefined, "removed"])
  const warnings = log.lines.filter(({ event }) => event === "retrieval.documents_kept")
  expect(warnings).toMatchObject([{ fields: { documents: 2 } }])
  broken.clear()
  expect(await sweep()).toBe(2)
  expect([await ingest.test.chunks(), await ingest.test.vectors()]).toEqual([[], []])
})

it("deletes a long document in pages, and leaves others alone", async () => {
  await open()
  const { deps, document } = ingest.test
  const other = await ingest.test.upload(lines(3))
  await run(other)
  const { no } = (await document(await removedFile()))!
  await sql`
    INSERT INTO retrieval_chunk (document_no, idx, start_at, end_at, text, words)
    SELECT ${no}, n, n, n + 1, 'a', '' FROM generate_series(2, 5100) n`.execute(
    deps.database.queries(),
  )
  const deleted: number[] = []
  const { run: runQuery } = deps.database
  const watched: typeof runQuery = (query) =>
    Effect.tap(runQuery(query), (result) =>
      Effect.sync(() => {
        const { numAffectedRows } = (result ?? {}) as { numAffectedRows?: bigint }
        if (numAffectedRows !== undefined) deleted.push(Number(numAffectedRows))
      }),
    )
  expect(
    await Effect.runPromise(
      sweepRemoved({ ...deps, database: { ...deps.database, run: watched } }),
    ),
  ).toBe(1)
  expect(deleted).toEqual([2, 5000, 101])
  expect(await document(other)).toMatchObject({ state: "ready" })
  expect([await ingest.test.chunks(), await ingest.test.vectors()]).toMatchObject([
    [{}, {}, {}],
    [{}, {}, {}],
  ])
})
