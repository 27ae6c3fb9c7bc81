import { Effect } from "effect"
import { sql } from "kysely"
import { describe, expect, it } from "vitest"
import { fakeEmbedModel } from "../../../testing/index.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { failDocument } from "./fail-document.ts"
import { tooSlow } from "./failure.ts"
import { ingestTerms } from "./send-job.ts"
import { rescue, sendOutdated } from "./upkeep.ts"

const ingest = useIngest()
const { open, run, expectReady } = ingest

describe("another model", () => {
  const serve = (embeddingSpace: string, dimensions = 8) => {
    const { entry, loaded } = fakeEmbedModel({ embeddingSpace, dimensions })
    ingest.test.deps.catalogue.set(entry.id, { state: "ready", loaded })
  }
  /** Each with the bytes of a vector. */
  const spaces = async () =>
    new Set((await ingest.test.vectors()).map(({ space, bytes }) => `${space} ${bytes}`))

  it("has ready files embedded again, at no cost, with no space in another", async () => {
    await open()
    const id = await ingest.test.upload(lines(70))
    await run(id)
    expect(await Effect.runPromise(sendOutdated(ingest.test.deps))).toBe(0)
    serve("another")
    expect(await Effect.runPromise(sendOutdated(ingest.test.deps))).toBe(1)
    await run(id)
    expect(await ingest.test.document(id)).toMatchObject({ space: "another", epoch: 2 })
    expect(await spaces()).toEqual(new Set(["another 16"]))
    await expectReady(id, 70)
    expect(await ingest.test.version()).toBe(2n)
    expect(await Effect.runPromise(sendOutdated(ingest.test.deps))).toBe(0)
  })

  it("reaches the files behind a page of those that break off", async () => {
    await open()
    const { deps } = ingest.test
    await sql`
      INSERT INTO retrieval_document (file_id, account, mode, state, metadata, space, dimensions, created_at, expires_at)
      SELECT 'file-' || n, 'acct_1', 'live', 'ready', '{}', 'older', 8, to_timestamp(0), to_timestamp(2e9)
      FROM generate_series(1, 250) n`.execute(deps.database.queries())
    const files = Array.from({ length: 250 }, (_, n) => `file-${n + 1}`)
    const held = () => Effect.runPromise(deps.queue.held(ingestTerms.short, files))
    expect(await Effect.runPromise(sendOutdated(deps))).toBe(200)
    expect([...(await held())]).toHaveLength(200)
    expect(await Effect.runPromise(sendOutdated(deps))).toBe(250)
    expect([...(await held())]).toHaveLength(250)
  })

  it("with vectors of another length has none of the old ones left", async () => {
    await open()
    const id = await ingest.test.upload(lines(3))
    await run(id)
    serve("fake-words-v1", 16)
    await Effect.runPromise(sendOutdated(ingest.test.deps))
    await run(id)
    expect(await ingest.test.document(id)).toMatchObject({ space: "fake-words-v1", dimensions: 16 })
    expect(await spaces()).toEqual(new Set(["fake-words-v1 32"]))
    await expectReady(id, 3)
  })

  it.each([
    ["another", 8],
    ["fake-words-v1", 16],
  ])(
    "in the middle of a file has its chunks embedded in one space: %s, %i",
    async (space, length) => {
      await open()
      const id = await ingest.test.upload(lines(70))
      const { put } = ingest.test.deps.vectors
      Object.assign(ingest.test.deps.vectors, {
        put: (...of: Parameters<typeof put>) => {
          serve(space, length)
          return put(...of)
        },
      })
      await run(id)
      expect(await ingest.test.document(id)).toMatchObject({ space, dimensions: length })
      expect(await spaces()).toEqual(new Set([`${space} ${2 * length}`]))
      await expectReady(id, 70)
    },
  )
})

it("a file that has lost its job gets another one", async () => {
  await open()
  const id = await ingest.test.upload(lines(1))
  const { held } = ingest.test.deps.queue
  ingest.test.clock.advance(61_000)
  expect(await Effect.runPromise(rescue(ingest.test.deps))).toBe(0)
  Object.assign(ingest.test.deps.queue, { held: () => Effect.succeed(new Set()) })
  expect(await Effect.runPromise(rescue(ingest.test.deps))).toBe(1)
  Object.assign(ingest.test.deps.queue, { held })
  await run(id)
  await expectReady(id, 1)
})

describe("a file past its deadline that ends while its row is read", () => {
  /** As `rescue` does with a row that it has listed before the worker's last write. */
  const failLate = async (text: string) => {
    await open()
    const id = await ingest.test.upload(text)
    await run(id)
    const row = await ingest.test.document(id)
    const late = failDocument(ingest.test.deps, row!, tooSlow(1))
    expect(await Effect.runPromise(Effect.flip(late))).toMatchObject({ _tag: "Superseded" })
    return id
  }

  it("stays ready, with its index", async () => {
    await expectReady(await failLate(lines(3)), 3)
    expect(await ingest.test.version()).toBe(1n)
  })

  it("keeps the reason for which it failed", async () => {
    const id = await failLate("!")
    expect(await ingest.test.file(id)).toMatchObject({
      status: "failed",
      progress: { code: "encrypted" },
    })
  })
})
