import { Effect, Exit, Scope, Stream } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import {
  apiError,
  type Clock,
  type Finding,
  type Ledger,
  type StoredFile,
} from "../../../core/index.ts"
import type { BatchTable } from "../tables.ts"
import { openWorkFixture, type WorkFixture } from "../testing/work-fixture.ts"
import { lineId } from "../work/result-line.ts"
import { segmentKey } from "../work/segments.ts"
import { keepWorking } from "../work/worker.ts"
import { batchCheck } from "./batch-check.ts"
import type { CheckDeps } from "./checked-batch.ts"
import { partCheck } from "./part-check.ts"

const run = Effect.runPromise
const hourMs = 3_600_000
const lines = 12
let aheadMs = 0
const clock: Clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() }
let work: WorkFixture
let checked: CheckDeps
/** Ended well, with answers and failures. */
let batch: string
let row: Awaited<ReturnType<WorkFixture["batch"]>>

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

beforeAll(async () => {
  work = await openWorkFixture({
    clock,
    run: (n) =>
      n % 4 === 1 ? Effect.fail(apiError("invalid_request_error")) : Effect.succeed({ n }),
  })
  checked = { ...work.deps, ledger: () => ({ children }) as Ledger }
  const scope = Scope.makeUnsafe()
  batch = await work.create("ada", lines)
  Effect.runFork(Effect.forkScoped(keepWorking(work.deps)).pipe(Scope.provide(scope)))
  await vi.waitFor(async () => expect((await work.batch(batch)).status).toBe("completed"), {
    timeout: 15_000,
  })
  await run(Scope.close(scope, Exit.void))
  row = await work.batch(batch)
})
afterAll(() => work?.close())
beforeEach(() => {
  aheadMs = 0
})

const findings = async (
  looked: (things: number) => void = () => {},
  fixture = checked,
): Promise<readonly Finding[]> => [
  ...(await run(Stream.runCollect(batchCheck(fixture).findings(looked)))),
  ...(await run(Stream.runCollect(partCheck(fixture).findings(looked)))),
]
const subject = () => `batch ${batch} of account ada (live)`
const textOf = ({ subject, problem, remedy = "-" }: Finding): string =>
  `${subject}: ${problem} (${remedy})`
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

it("finds nothing where all is well, and says how much it compared", async () => {
  let looked = 0
  expect(
    await findings((things) => {
      looked += things
    }),
  ).toEqual([])
  expect([looked, row.completed, row.failed]).toEqual([1, 9, 3])
})

describe("result files", () => {
  const broken = async (kind: "output" | "error", alter: (all: string[]) => readonly string[]) => {
    const file = await fileOf(kind === "output" ? row.output_file_id : row.error_file_id)
    const text = await work.files.text(file)
    await put(
      file.blobKey,
      alter(text.split("\n").slice(0, -1))
        .map((line) => `${line}\n`)
        .join(""),
    )
    try {
      return (await texts()).map((found) => found.replace(file.id, kind))
    } finally {
      await put(file.blobKey, text)
      expect(await findings()).toEqual([])
    }
  }
  const says = (what: string) => [`${subject()}: its ${what} (-)`]

  it.each<[string, "output" | "error", (all: string[]) => readonly string[], string]>([
    [
      "that lacks a line",
      "output",
      (all) => all.slice(1),
      "output file output: it has 8 lines, not 9",
    ],
    [
      "that has a line twice",
      "output",
      (all) => [...all.slice(0, 2), ...all.slice(1)],
      "output file output: line 3 is of no later line of the input than the one before it",
    ],
    [
      "that is out of order",
      "output",
      ([a = "", b = "", ...rest]) => [b, a, ...rest],
      "output file output: line 2 is of no later line of the input than the one before it",
    ],
    [
      "that is no JSON",
      "output",
      (all) => [...all.slice(0, 8), "{"],
      "output file output: line 9 is not JSON",
    ],
    [
      "with a custom_id twice",
      "output",
      (all) => all.map((line) => line.replace("line-3", "line-2")),
      "output file output: line 3 has a custom_id that came before",
    ],
    [
      "of failures that lacks one",
      "error",
      (all) => all.slice(0, 2),
      "error file error: it has 2 lines, not 3",
    ],
  ])("names one %s", async (_, kind, alter, problem) =>
    expect(await broken(kind, alter)).toEqual(says(problem)),
  )

  it("one that is of another batch is known by its first line", async () => {
    const others = (all: string[]) =>
      all.map((line, n) => line.replace(/batch_req_\w+/, lineId("another", n)))
    expect(await broken("output", others)).toEqual(
      says("output file output: line 1 is of no later line of the input than the one before it"),
    )
  }, 60_000)

  it("names a line that is answered in both", async () => {
    const failed = (await work.files.text(await fileOf(row.output_file_id))).split("\n")[0]!
    expect(await broken("error", (all) => [failed, ...all.slice(1)])).toEqual(
      says("error file error: line 1 answers line 1 of the input, which was answered before"),
    )
  })

  it("a file that was deleted is no finding; one that never was is", async () => {
    const files = { ...work.deps.files, find: () => Effect.succeed(undefined) }
    expect(await findings(undefined, { ...checked, files })).toEqual([])
    const stranger = { ...files, knows: () => Effect.succeed(false) }
    const lost = (kind: string, id: string | null) =>
      `${subject()}: its ${kind} file ${id} is not among the files of its account, and nobody deleted it there (-)`
    expect((await findings(undefined, { ...checked, files: stranger })).map(textOf)).toEqual([
      lost("output", row.output_file_id),
      lost("error", row.error_file_id),
    ])
    aheadMs = 30 * 24 * hourMs
    expect(await findings(undefined, { ...checked, files: stranger })).toEqual([])
    await change({ output_file_id: null })
    expect(await texts()).toEqual([
      `${subject()}: 9 lines went to its output file, but it has none (-)`,
    ])
    await change({ output_file_id: row.output_file_id })
  })
})

it("names counters that don't come to the total", async () => {
  await change({ total: lines + 1 })
  expect(await texts()).toEqual([
    `${subject()}: it is completed with 9 answers and 3 failures of 13 lines (-)`,
  ])
  await change({ total: lines })
})

describe("money", () => {
  it("takes over what the ledger says of a batch that is over", async () => {
    await change({ cost_micros: row.cost_micros + 1n })
    expect(await texts()).toEqual([
      `${subject()}: it says that its lines cost Rp6.750001; the ledger says Rp6.75 (it says what the ledger says)`,
    ])
    await repairAll()
    expect([await findings(), (await work.batch(batch)).cost_micros]).toEqual([[], row.cost_micros])
  })

  it("a line that is paid between the two looks is no finding", async () => {
    const paid: Ledger["children"] = (parents) =>
      Effect.tap(children(parents), (found) =>
        Effect.promise(() => change({ cost_micros: (found.get(batch)?.costMicros ?? 0n) + 5n })),
      )
    const later: Ledger["children"] = (parents) =>
      Effect.map(
        paid(parents),
        (found) =>
          new Map(
            [...found].map(([id, calls]) => [id, { ...calls, costMicros: calls.costMicros + 5n }]),
          ),
      )
    expect(
      await findings(undefined, { ...checked, ledger: () => ({ children: later }) as Ledger }),
    ).toEqual([])
    await change({ cost_micros: row.cost_micros })
    expect(await findings(undefined, { ...checked, ledger: () => undefined })).toEqual([])
  })

  it("gives back what lines of a batch hold that was over long ago", async () => {
    await sql`INSERT INTO test_call VALUES ('left', ${batch}, 'r', 'open', 0)`.execute(
      work.deps.database.queries(),
    )
    expect(await findings()).toEqual([])
    aheadMs = hourMs
    expect(await texts()).toEqual([
      `${subject()}: it is over, and 1 of its lines still hold money (what they hold is given back)`,
    ])
    await repairAll()
    expect(await findings()).toEqual([])
  })
})

describe("a batch under way", () => {
  const key = () => segmentKey({ id: batch, epoch: row.epoch }, 2, "output")
  /** As it was after four lines: two in a part, two in rows. */
  const begin = async () => {
    await change({
      status: "in_progress",
      ended_at: null,
      completed: 3,
      failed: 1,
      done_through: 2,
      cost_micros: row.cost_micros,
    })
    await put(key(), "one\ntwo\n")
    await sql`INSERT INTO batches_part VALUES (${batch}, 'output', 2, ${key()}, 8)`.execute(
      work.deps.database.queries(),
    )
    await sql`INSERT INTO batches_line VALUES (${batch}, 3, true, 'x'), (${batch}, 4, false, 'y')`.execute(
      work.deps.database.queries(),
    )
  }
  const end = async () => {
    await change({
      status: "completed",
      ended_at: row.ended_at,
      completed: row.completed,
      failed: row.failed,
      done_through: row.done_through,
    })
    await work.db.deleteFrom("batches_part").execute()
    await work.db.deleteFrom("batches_line").execute()
    await run(work.deps.storage.remove(key()))
  }

  it("has each line once, in parts or waiting for one", async () => {
    await begin()
    expect(await findings()).toEqual([])
    await change({ completed: 4 })
    expect(await texts()).toEqual([
      `${subject()}: it counts 4 answers and 1 failures; there are 3 and 1 (-)`,
    ])
    await change({ completed: 3, done_through: 3 })
    expect(await texts()).toEqual([
      `${subject()}: line 3 waits for its part, but lines up to 3 lie in parts (-)`,
    ])
    await end()
  })

  it("is named when its time was over long ago, and no worker has ended it", async () => {
    await begin()
    aheadMs = 25 * hourMs - 60_000
    expect(await findings()).toEqual([])
    aheadMs = 25 * hourMs + 60_000
    const overdue = (status: string) =>
      `${subject()}: it is still ${status}, but its time was over at ${row.deadline_at.toISOString()}: no worker has ended it (-)`
    expect(await texts()).toEqual([overdue("in_progress")])
    await change({ status: "validating" })
    expect(await texts()).toEqual([overdue("validating")])
    await end()
  })

  it("has its parts", async () => {
    await begin()
    await put(key(), "one\ntw\n")
    expect(await texts()).toEqual([
      `${subject()}: its output part 2 (${key()}) has 7 bytes, not 8 (-)`,
    ])
    await run(work.deps.storage.remove(key()))
    expect(await texts()).toEqual([
      `${subject()}: its output part 2 (${key()}) is missing (-)`,
      `${subject()}: so its lines can't be counted (-)`,
    ])
    await end()
  })

  it("that goes on between the looks is no finding", async () => {
    await begin()
    await change({ completed: 4 })
    const { storage } = work.deps
    const goesOn = Stream.suspend(() =>
      Stream.concat(
        Stream.fromEffectDrain(Effect.promise(() => change({ epoch: row.epoch + 1 }))),
        storage.get(key()),
      ),
    )
    expect(
      await findings(undefined, { ...checked, storage: { ...storage, get: () => goesOn } }),
    ).toEqual([])
    await change({ epoch: row.epoch })
    await end()
  })

  it("that is over leaves nothing behind", async () => {
    await begin()
    await change({
      status: "completed",
      ended_at: row.ended_at,
      completed: row.completed,
      failed: row.failed,
    })
    aheadMs = 2 * hourMs - 60_000
    expect(await findings()).toEqual([])
    aheadMs = 2 * hourMs
    expect(await texts()).toEqual([
      `${subject()}: it is over, and 2 lines and 1 parts of it are left (they are removed)`,
    ])
    await repairAll()
    expect([await findings(), await work.parts()]).toEqual([[], []])
    await end()
  })
})

it("removes parts that nobody will name", async () => {
  const orphan = segmentKey({ id: batch, epoch: 1 }, 9, "error")
  const stray = segmentKey({ id: "batch-gone", epoch: 1 }, 9, "error")
  for (const key of [orphan, stray, "batches/odd"]) await put(key, "x")
  const odd =
    "blob batches/odd: it lies among the parts of batches, but its key is none of theirs (-)"
  const lost = (key: string) => `blob ${key}: no part names it, and none will (it is removed)`
  expect((await texts()).sort()).toEqual([lost(stray), odd].sort())
  aheadMs = 2 * hourMs
  expect((await texts()).sort()).toEqual([lost(orphan), lost(stray), odd].sort())
  await repairAll()
  expect([await texts(), await work.parts()]).toEqual([[odd], ["batches/odd"]])
  await run(work.deps.storage.remove("batches/odd"))
})
