import { Effect, Exit, Scope } from "effect"
import { describe, expect, it } from "vitest"
import type { FakeQueue } from "../../../testing/index.ts"
import { claimDocument } from "../documents/claim.ts"
import type { IngestFixtureOptions } from "../testing/ingest-fixture.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { ingestHandlers } from "./ingest-job.ts"
import { withJobs } from "./send-job.ts"
import { rescue, sendOutdated } from "./upkeep.ts"

const ingest = useIngest()
const { open, run, expectReady } = ingest

const longJobs = () =>
  (ingest.test.deps.queue as FakeQueue).waiting.flatMap(({ handler, job }) =>
    handler === "retrieval-ingest-long" ? [job] : [],
  )
const embeddedAtOnce = () => ingest.test.embedModel.runs.map(({ request }) => request.items.length)
/** As if all that were sent had run. */
const endJobs = async () => {
  const queue = ingest.test.deps.queue as FakeQueue
  const slots = { ingestsAtOnce: 9, longIngestsAtOnce: 9, leaseMs: 60_000 }
  const scope = Scope.makeUnsafe()
  for (const handler of ingestHandlers(Effect.succeed(ingest.test.deps), slots))
    await Effect.runPromise(
      queue.consume({ ...handler, run: () => Effect.void }).pipe(Scope.provide(scope)),
    )
  await Effect.runPromise(queue.advance(0))
  await Effect.runPromise(Scope.close(scope, Exit.void))
  expect(queue.waiting).toEqual([])
}
const epochOf = async (id: string) => (await ingest.test.document(id))?.epoch

/** Each batch takes 31 seconds. */
const openSlow = (options: IngestFixtureOptions = {}) =>
  open({
    ...options,
    model: { before: () => Effect.sync(() => ingest.test.clock.advance(31_000)) },
  })
const uploadOther = () => {
  ingest.test.identity.add({ key: "svc_live_2", keyId: "key_2", account: "acct_2" })
  const tenant = { account: "acct_2", mode: "live" } as const
  return ingest.test.upload(lines(1), { tenant, keyId: "key_2" })
}

describe("a file with many chunks", () => {
  it("is read among the short ones, and embedded among the long ones", async () => {
    await open()
    const id = await ingest.test.upload(lines(257))
    await run(id)
    expect(await ingest.test.document(id)).toMatchObject({
      state: "embedding",
      chunks: 257,
      embedded: 0,
      failures: 0,
    })
    expect([longJobs(), await ingest.test.calls()]).toEqual([[{ file: id, again: false }], []])
    await run(id, "long")
    await expectReady(id, 257)
  })

  it("is embedded at once where it has no more chunks than a short one", async () => {
    await open()
    const id = await ingest.test.upload(lines(256))
    await run(id)
    await expectReady(id, 256)
    expect(longJobs()).toEqual([])
  })

  it("is left to its job by a short one that runs again", async () => {
    await open()
    const id = await ingest.test.upload(lines(257))
    await run(id)
    const before = await epochOf(id)
    await run(id)
    expect([await epochOf(id), longJobs().length]).toEqual([before, 1])
  })
})

it("a long file whose job was lost finds to its lane again", async () => {
  await open()
  const id = await ingest.test.upload(lines(1), { bytes: 1_000_001 })
  ingest.test.clock.advance(61_000)
  expect(await Effect.runPromise(rescue(ingest.test.deps))).toBe(0)
  const { held } = ingest.test.deps.queue
  Object.assign(ingest.test.deps.queue, { held: () => Effect.succeed(new Set()) })
  expect(await Effect.runPromise(rescue(ingest.test.deps))).toBe(1)
  Object.assign(ingest.test.deps.queue, { held })
  await run(id)
  expect(await ingest.test.document(id)).toMatchObject({ state: "waiting", epoch: 0 })
  expect(longJobs()).toHaveLength(1)
})

describe("a long file that is embedded for a while", () => {
  it("gives way to files of others, goes on where it was, and is paid once", async () => {
    await openSlow()
    const id = await ingest.test.upload(lines(257), { bytes: 1_000_001 })
    await uploadOther()
    await run(id, "long")
    expect(await ingest.test.document(id)).toMatchObject({
      state: "embedding",
      embedded: 64,
      failures: 0,
    })
    expect(await ingest.test.calls()).toMatchObject([{ state: "voided" }])
    expect(longJobs()).toEqual([{ file: id }, { file: id, again: true }])
    for (let turn = 1; turn < 5; turn++) await run(id, "long", turn % 2 === 1)
    await expectReady(id, 257)
    expect(embeddedAtOnce()).toEqual([64, 64, 64, 64, 1])
  })

  it("keeps its slot where nobody else has files", async () => {
    await openSlow()
    const id = await ingest.test.upload(lines(257), { bytes: 1_000_001 })
    await ingest.test.upload(lines(1))
    await run(id, "long")
    await expectReady(id, 257)
  })

  it("sends no job for another worker's claim", async () => {
    await openSlow()
    const id = await ingest.test.upload(lines(257), { bytes: 1_000_001 })
    await uploadOther()
    const { put } = ingest.test.deps.vectors
    const { transaction } = ingest.test.deps.database
    let isPut = false
    Object.assign(ingest.test.deps.vectors, {
      put: (...of: Parameters<typeof put>) => {
        isPut = true
        return put(...of)
      },
    })
    Object.assign(ingest.test.deps.database, {
      transaction: (body: Parameters<typeof transaction>[0]) =>
        Effect.tap(transaction(body), () => {
          if (!isPut) return Effect.void
          isPut = false
          return Effect.asVoid(claimDocument(ingest.test.deps, id))
        }),
    })
    await run(id, "long")
    Object.assign(ingest.test.deps.database, { transaction })
    expect(await ingest.test.document(id)).toMatchObject({ embedded: 64, epoch: 2 })
    expect(longJobs()).toEqual([{ file: id }])
  })

  it("gives way when it moves to another space, and has its one job", async () => {
    await openSlow()
    const id = await ingest.test.upload(lines(257), { bytes: 1_000_001 })
    await run(id, "long")
    await endJobs()
    await uploadOther()
    const { entry, loaded } = ingest.test.embedModel
    ingest.test.deps.catalogue.set(entry.id, {
      state: "ready",
      loaded: { ...loaded, embeddingSpace: "other" },
    })
    await run(id, "long")
    expect(await ingest.test.document(id)).toMatchObject({ state: "ready", embedded: 257 })
    expect(await Effect.runPromise(withJobs(ingest.test.deps, [id]))).toEqual(new Set([id]))
    await Effect.runPromise(sendOutdated(ingest.test.deps))
    expect(longJobs()).toEqual([{ file: id, again: true }])
    for (let turn = 1; turn < 5; turn++) await run(id, "long", turn % 2 === 1)
    expect(await ingest.test.document(id)).toMatchObject({ space: "other" })
  })
})
