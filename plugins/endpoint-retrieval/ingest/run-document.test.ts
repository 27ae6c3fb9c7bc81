import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { apiError, PortError } from "../../../core/index.ts"
import { claimDocument } from "../documents/claim.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { maxFailures } from "./failure.ts"
import { sweepRemoved } from "./sweep-removed.ts"
import { rescue } from "./upkeep.ts"

const ingest = useIngest()
const { open, run, breaksOff, remove, expectReady } = ingest

const expectFailed = async (id: string, code: string, details: RegExp) => {
  const file = await ingest.test.file(id)
  expect(file).toMatchObject({ status: "failed", progress: { code } })
  expect(file.details).toMatch(details)
  expect(await ingest.test.document(id)).toMatchObject({ state: "failed" })
  expect([await ingest.test.chunks(), await ingest.test.vectors()]).toEqual([[], []])
  expect((await ingest.test.calls()).filter(({ state }) => state !== "voided")).toEqual([])
}

it("a file becomes chunks and vectors, is processed, and its tokens are paid once", async () => {
  await open()
  const id = await ingest.test.upload(lines(70))
  expect(await ingest.test.file(id)).toMatchObject({ status: "uploaded" })
  await run(id)
  expect(await ingest.test.document(id)).toMatchObject({ space: "fake-words-v1", dimensions: 8 })
  await expectReady(id, 70)
  expect(await ingest.test.version()).toBe(1n)
  await run(id)
  await expectReady(id, 70)
})

it("the file of a test key costs nothing", async () => {
  await open()
  const tenant = { account: "acct_1", mode: "test" } as const
  ingest.test.identity.add({ key: "svc_test_1", keyId: "key_2", mode: "test" })
  const id = await ingest.test.upload(lines(3), { tenant, keyId: "key_2" })
  await run(id)
  expect(await ingest.test.file(id, tenant)).toMatchObject({ status: "processed" })
  expect(await ingest.test.calls()).toMatchObject([
    { state: "settled", hold: 0n, cost: 0n, tokens: 6 },
  ])
})

it("NUL, which PostgreSQL can't hold, and half a character leave the places right", async () => {
  await open()
  const id = await ingest.test.upload("a\0b\nc\ud83d")
  await run(id)
  expect((await ingest.test.chunks()).map(({ text, start_at }) => [text, start_at])).toEqual([
    ["a\ufffdb", 0],
    ["c\ufffd", 4],
  ])
})

describe("a file fails with a reason, and costs nothing", () => {
  it("of its own", async () => {
    await open()
    const id = await ingest.test.upload("!")
    await run(id)
    await expectFailed(id, "encrypted", /^It is encrypted\.$/)
    await run(id)
  })

  it("with more chunks than a file may have", async () => {
    await open({ settings: { maxChunksPerFile: 20 } })
    const id = await ingest.test.upload(lines(21))
    await run(id)
    await expectFailed(id, "too_large", /more than 20 sections/)
  })

  it("that its balance does not cover", async () => {
    await open({ balanceMicros: 20_999n })
    const id = await ingest.test.upload(lines(7))
    await run(id)
    await expectFailed(id, "insufficient_quota", /14 tokens/)
  })

  it("whose key was revoked, or does not reach the model", async () => {
    await open()
    const revoked = await ingest.test.upload(lines(1))
    const unknown = await ingest.test.upload(lines(1), { keyId: undefined })
    ingest.test.identity.add({ key: "svc_live_1", keyId: "key_1", revoked: true })
    await run(revoked)
    await run(unknown)
    await expectFailed(revoked, "not_permitted", /API key/)
    await expectFailed(unknown, "not_permitted", /Upload it again/)
  })

  it("after some runs that broke off without a known reason", async () => {
    await open({ model: { before: () => Effect.fail(apiError("backend_error")) } })
    const id = await ingest.test.upload(lines(1))
    for (let n = 1; n < maxFailures; n++) await breaksOff(id, /The model failed/)
    await run(id)
    await expectFailed(id, "internal", /on our side/)
  })

  it("beyond its deadline, also where nobody runs it", async () => {
    await open({ settings: { ingestHours: 1 } })
    const run1 = await ingest.test.upload(lines(1))
    ingest.test.clock.advance(3_600_000)
    await run(run1)
    await expectFailed(run1, "too_slow", /within 1 hours/)
    const left = await ingest.test.upload(lines(1))
    ingest.test.clock.advance(3_600_000)
    await Effect.runPromise(rescue(ingest.test.deps))
    await expectFailed(left, "too_slow", /within 1 hours/)
  })
})

describe("a run that breaks off", () => {
  it("goes on with the chunks that have no vector", async () => {
    let isBusy = false
    await open({
      model: { before: () => (isBusy ? Effect.fail(apiError("backend_busy")) : Effect.void) },
    })
    const id = await ingest.test.upload(lines(130))
    const { put } = ingest.test.deps.vectors
    Object.assign(ingest.test.deps.vectors, {
      put: (...of: Parameters<typeof put>) => {
        isBusy = true
        return put(...of)
      },
    })
    await breaksOff(id, /busy|saturated/)
    expect(await ingest.test.document(id)).toMatchObject({
      state: "embedding",
      embedded: 64,
      failures: 0,
    })
    expect(await ingest.test.file(id)).toMatchObject({
      status: "processing",
      progress: { stage: "embedding", chunks: 130, chunks_embedded: 64, tokens: 260 },
    })
    Object.assign(ingest.test.deps.vectors, { put })
    isBusy = false
    await run(id)
    await expectReady(id, 130)
    const texts = ingest.test.embedModel.runs.map(({ request }) => request.items.length)
    expect(texts).toEqual([64, 64, 64, 2])
  })

  it("starts over where the file was not read to its end", async () => {
    await open()
    const id = await ingest.test.upload(lines(25))
    const { open: openModel } = ingest.test.deps.catalogue
    let tries = 0
    Object.assign(ingest.test.deps.catalogue, {
      open: (...of: Parameters<typeof openModel>) =>
        ++tries === 3 ? Effect.fail(apiError("model_loading")) : openModel(...of),
    })
    await breaksOff(id, /loading/)
    expect(await ingest.test.document(id)).toMatchObject({
      state: "extracting",
      chunks: 10,
      tokens: 20n,
    })
    await run(id)
    await expectReady(id, 25)
  })

  it("waits for a model that loads, or can't be opened yet", async () => {
    await open()
    const { entry, loaded } = ingest.test.embedModel
    ingest.test.deps.catalogue.set(entry.id, { state: "failed", reason: "no such file" })
    const id = await ingest.test.upload(lines(1))
    const running = run(id)
    await vi.waitFor(async () => expect(await ingest.test.document(id)).toMatchObject({ epoch: 1 }))
    ingest.test.deps.catalogue.set(entry.id, { state: "ready", loaded })
    await running
    await expectReady(id, 1)
    expect(await ingest.test.document(id)).toMatchObject({ failures: 0 })
  })

  it("waits for money that other calls hold", async () => {
    await open({ balanceMicros: 3000n })
    const id = await ingest.test.upload(lines(1))
    ingest.test.money.heldMicros = 1n
    await breaksOff(id, /held by other calls/)
    expect(await ingest.test.document(id)).toMatchObject({ state: "embedding", failures: 0 })
    ingest.test.money.heldMicros = 0n
    await run(id)
    await expectReady(id, 1)
  })

  /** The transaction that settles fails: with its answer lost, or rolled back. */
  const lastCommitFails = (how: "lost" | "rolled back") => {
    const { billing, database } = ingest.test.deps
    const { settle } = billing
    const { transaction } = database
    const gone = new PortError({ port: "database", message: "gone", why: "unavailable" })
    let isLast = false
    Object.assign(billing, {
      settle: (...of: Parameters<typeof settle>) => {
        isLast = of[0][0]?.outcome === "settled"
        return settle(...of)
      },
    })
    const failing = Effect.suspend(() => (isLast ? Effect.fail(gone) : Effect.void))
    const mended = { settle, transaction }
    Object.assign(database, {
      transaction: (body: Parameters<typeof transaction>[0]) =>
        how === "lost"
          ? Effect.tap(transaction(body), () => failing)
          : transaction((tx) => Effect.tap(body(tx), () => failing)),
    })
    return () => {
      Object.assign(billing, { settle: mended.settle })
      Object.assign(database, { transaction: mended.transaction })
    }
  }

  it.each(["lost", "rolled back"] as const)(
    "pays once where its last commit was %s",
    async (how) => {
      await open()
      const id = await ingest.test.upload(lines(2))
      const mend = lastCommitFails(how)
      await breaksOff(id, /gone/)
      mend()
      const state = how === "lost" ? "ready" : "embedding"
      expect(await ingest.test.document(id)).toMatchObject({ state })
      await run(id)
      await expectReady(id, 2)
    },
  )

  it("holds the price anew where the work outlasts the hold", async () => {
    await open({ model: { before: () => Effect.sync(() => ingest.test.clock.advance(60_000)) } })
    const id = await ingest.test.upload(lines(2))
    await run(id)
    await expectReady(id, 2)
    expect((await ingest.test.calls()).map(({ state }) => state).sort()).toEqual([
      "settled",
      "voided",
    ])
  })
})

describe("a worker that lost its claim changes nothing", () => {
  it("to another worker", async () => {
    let other: Promise<void> | undefined
    await open({
      model: {
        before: () =>
          Effect.promise(async () => {
            if (other) return
            other = Promise.resolve()
            await run(id)
          }),
      },
    })
    const id = await ingest.test.upload(lines(3))
    await run(id)
    await expectReady(id, 3)
    expect(await ingest.test.document(id)).toMatchObject({ epoch: 2 })
  })

  it("to another worker that has only begun", async () => {
    let isClaimed = false
    const claim = Effect.suspend(() => {
      if (isClaimed) return Effect.void
      isClaimed = true
      return Effect.orDie(claimDocument(ingest.test.deps, id))
    })
    await open({ model: { before: () => Effect.asVoid(claim) } })
    const id = await ingest.test.upload(lines(3))
    await run(id)
    expect(await ingest.test.document(id)).toMatchObject({ state: "embedding", embedded: 0 })
    expect(await ingest.test.calls()).toMatchObject([{ state: "voided" }])
    await run(id)
    await expectReady(id, 3)
  })

  it("to the deletion of the file", async () => {
    await open({ model: { before: (step) => (step > 0 ? Effect.void : Effect.promise(gone)) } })
    const id = await ingest.test.upload(lines(3))
    const gone = async () => void (await remove(id))
    await run(id)
    expect(await ingest.test.document(id)).toMatchObject({ state: "removed", embedded: 0 })
    expect(await ingest.test.calls()).toMatchObject([{ state: "voided" }])
    await Effect.runPromise(sweepRemoved(ingest.test.deps))
    expect([await ingest.test.document(id), await ingest.test.chunks()]).toEqual([undefined, []])
  })
})
