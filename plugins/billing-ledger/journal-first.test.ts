import { randomUUID } from "node:crypto"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Fiber } from "effect"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type Database, noUsage, PortError, type Settlement } from "../../core/index.ts"
import { fakeClock } from "../../testing/index.ts"
import { makeJournalFirst } from "./journal-first.ts"
import { makeSettlementJournal, settlementsIn } from "./settlement-journal.ts"
import { plainLedger, settlementOf } from "./testing/plain-ledger.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rakit-journal-"))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A database that settles each call when it is allowed to. */
const openFixture = () => {
  const replica = randomUUID()
  const journal = makeSettlementJournal(folder, replica)
  const allowed = new Map<string, Deferred.Deferred<void>>()
  const allow = (id: string) => {
    const known = allowed.get(id) ?? Deferred.makeUnsafe<void>()
    allowed.set(id, known)
    return known
  }
  const settled: string[] = []
  const settle = ({ id }: Settlement, ended: () => void) =>
    void Effect.runFork(
      Effect.andThen(
        Deferred.await(allow(id)),
        Effect.sync(() => {
          settled.push(id)
          ended()
        }),
      ),
    )
  const first = makeJournalFirst(journal, settle, () => true)
  const written = async () =>
    settlementsIn(await readFile(join(folder, `${replica}.jsonl`), "utf8")).map(({ id }) => id)
  return {
    journal,
    first,
    settled,
    written,
    finish: (id: string) => Deferred.succeed(allow(id), undefined),
  }
}

test("a settlement is taken when the journal has it, and goes on to the database", async () => {
  const { first, written, settled, finish, journal } = openFixture()
  expect(await Effect.runPromise(first.take(settlementOf("a")))).toBe(true)
  expect(await written()).toEqual(["a"])
  expect([settled, first.isBusy(), first.has("a")]).toEqual([[], true, true])
  await Effect.runPromise(Effect.andThen(finish("a"), first.drained))
  expect([settled, first.isBusy()]).toEqual([["a"], false])
  await Effect.runPromise(journal.close)
})

test("what comes at once is written at once", async () => {
  const { journal, written } = openFixture()
  let writes = 0
  const counted = makeJournalFirst(
    {
      ...journal,
      append: (...args) =>
        Effect.andThen(
          Effect.sync(() => ++writes),
          journal.append(...args),
        ),
    },
    (_, ended) => ended(),
    () => true,
  )
  const items = ["a", "b", "c"].map((id) => counted.take(settlementOf(id)))
  expect(await Effect.runPromise(Effect.all(items, { concurrency: "unbounded" }))).toEqual([
    true,
    true,
    true,
  ])
  expect(writes).toBe(1)
  expect(await written()).toEqual(["a", "b", "c"])
  await Effect.runPromise(journal.close)
})

test("waits for what was taken before, not for what comes after", async () => {
  const { first, finish, journal } = openFixture()
  const work = Effect.gen(function* () {
    yield* first.take(settlementOf("before"))
    const waiting = yield* Effect.forkChild(first.drained, { startImmediately: true })
    yield* first.take(settlementOf("after"))
    yield* finish("before")
    yield* Fiber.join(waiting)
    expect(first.has("after")).toBe(true)
    yield* finish("after")
    yield* first.drained
  })
  await Effect.runPromise(work)
  await Effect.runPromise(journal.close)
})

test("takes nothing that the disk does not take, and no more than it may", async () => {
  const full = new PortError({ port: "billing", message: "full" })
  const { journal } = openFixture()
  const never = () => {}
  const broken = makeJournalFirst(
    { ...journal, append: () => Effect.fail(full) },
    never,
    () => true,
  )
  expect(await Effect.runPromise(broken.take(settlementOf("a")))).toBe(false)
  expect(broken.isBusy()).toBe(false)
  const long = makeJournalFirst({ ...journal, bytes: () => 9 * 2 ** 20 }, never, () => true)
  expect(await Effect.runPromise(long.take(settlementOf("a")))).toBe(false)
  const many = makeJournalFirst({ ...journal, append: () => Effect.void }, never, () => true)
  const taken = await Effect.runPromise(
    Effect.forEach(
      Array.from({ length: 1_001 }, (_, i) => settlementOf(`${i}`)),
      many.take,
    ),
  )
  expect(taken.filter((one) => !one)).toHaveLength(1)
  expect(taken.at(-1)).toBe(false)
})

test("what has settled is written over, and what has not is always in the journal", async () => {
  const { first, journal, written, finish } = openFixture()
  const large = (id: string) => ({ ...settlementOf(id), timing: "x".repeat(300_000) })
  await Effect.runPromise(first.take(large("stuck")))
  for (let i = 0; i < 20; i++) {
    expect(await Effect.runPromise(first.take(large(`${i}`)))).toBe(true)
    expect(await written()).toEqual(expect.arrayContaining(["stuck", `${i}`]))
    await Effect.runPromise(finish(`${i}`))
    await expect.poll(() => first.has(`${i}`)).toBe(false)
  }
  expect(journal.bytes()).toBeLessThan(2 * 2 ** 20)
  await Effect.runPromise(finish("stuck"))
  await Effect.runPromise(Effect.andThen(first.drained, journal.close))
})

test("a disk that is full takes any number, as long as they settle", async () => {
  const room = { reservedBytes: 2 ** 20, maxBytes: 2 ** 20 }
  const journal = makeSettlementJournal(folder, "small", room)
  await Effect.runPromise(journal.open)
  const first = makeJournalFirst(
    journal,
    (_, ended) => ended(),
    () => true,
  )
  const items = Array.from({ length: 3_000 }, (_, i) => ({
    ...settlementOf(`${i}`),
    timing: "x".repeat(600),
  }))
  const taken = await Effect.runPromise(Effect.forEach(items, first.take))
  expect(new Set(taken)).toEqual(new Set([true]))
  expect(journal.bytes()).toBeLessThan(2 ** 19)
  await Effect.runPromise(journal.close)
})

test("what throws in the journal is not taken, and nobody waits for it", async () => {
  const { journal } = openFixture()
  const append = () => Effect.die(new Error("ESTALE"))
  const first = makeJournalFirst(
    { ...journal, append },
    () => {},
    () => true,
  )
  expect(await Effect.runPromise(first.take(settlementOf("a")))).toBe(false)
  await Effect.runPromise(first.drained)
})

test("who makes room writes over nothing that comes meanwhile", async () => {
  const { journal, written } = openFixture()
  await Effect.runPromise(journal.open)
  const first = makeJournalFirst(
    // as a fiber does after many steps
    { ...journal, rewind: (counted) => Effect.andThen(Effect.yieldNow, journal.rewind(counted)) },
    ({ id }, ended) => (id === "large" ? ended() : undefined),
    () => true,
  )
  const large = { ...settlementOf("large"), timing: "x".repeat(2 ** 18) }
  await Effect.runPromise(first.take(large))
  const takes = ["late", "early"].map((id) => first.take(settlementOf(id)))
  await Effect.runPromise(Effect.all(takes, { concurrency: "unbounded" }))
  expect(journal.bytes()).toBeLessThan(2 ** 18)
  await Effect.runPromise(first.take(large))
  expect(await written()).toEqual(expect.arrayContaining(["late", "early"]))
  await Effect.runPromise(journal.close)
})

test("what the database could not take stays in the journal, however full that is", async () => {
  const { journal, written } = openFixture()
  const down = new PortError({ port: "database", message: "down" })
  const database = { run: () => Effect.fail(down) } as unknown as Database
  const billing = plainLedger(database, fakeClock(), { journal, journalFirst: true })
  const large = { ...settlementOf("a"), usage: { ["m".repeat(5 * 2 ** 20)]: noUsage } }
  await Effect.runPromise(billing.settle([large]))
  await Effect.runPromise(Effect.andThen(billing.drained, journal.others))
  expect(billing.kept.size()).toBe(1)
  expect(await written()).toContain("a")
  await Effect.runPromise(journal.close)
})
