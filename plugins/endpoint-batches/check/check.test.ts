import { Effect } from "effect"
import { sql } from "kysely"
import { describe, expect, it } from "vitest"
import type { Ledger } from "../../../core/index.ts"
import { lines, openCheckFixture, textOf } from "../testing/check-fixture.ts"
import { lineId } from "../work/result-line.ts"
import { segmentKey } from "../work/segments.ts"

const hourMs = 3_600_000
const {
  checked,
  work,
  batch,
  row,
  time,
  children,
  subject,
  findings,
  texts,
  repairAll,
  change,
  put,
  fileOf,
} = await openCheckFixture()

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
  const says = (what: string) => [`${subject}: its ${what} (-)`]

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
      `${subject}: its ${kind} file ${id} is not among the files of its account, and nobody deleted it there (-)`
    expect((await findings(undefined, { ...checked, files: stranger })).map(textOf)).toEqual([
      lost("output", row.output_file_id),
      lost("error", row.error_file_id),
    ])
    time.aheadMs = 30 * 24 * hourMs
    expect(await findings(undefined, { ...checked, files: stranger })).toEqual([])
    await change({ output_file_id: null })
    expect(await texts()).toEqual([
      `${subject}: 9 lines went to its output file, but it has none (-)`,
    ])
    await change({ output_file_id: row.output_file_id })
  })
})

it("names counters that don't come to the total", async () => {
  await change({ total: lines + 1 })
  expect(await texts()).toEqual([
    `${subject}: it is completed with 9 answers and 3 failures of 13 lines (-)`,
  ])
  await change({ total: lines })
})

describe("money", () => {
  it("takes over what the ledger says of a batch that is over", async () => {
    await change({ cost_micros: row.cost_micros + 1n })
    expect(await texts()).toEqual([
      `${subject}: it says that its lines cost Rp6.750001; the ledger says Rp6.75 (it says what the ledger says)`,
    ])
    await repairAll()
    expect([await findings(), (await work.batch(batch)).cost_micros]).toEqual([[], row.cost_micros])
  })

  it("a line that is paid between the two reads is no finding", async () => {
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
    time.aheadMs = hourMs
    expect(await texts()).toEqual([
      `${subject}: it is over, and 1 of its lines still hold money (what they hold is given back)`,
    ])
    await repairAll()
    expect(await findings()).toEqual([])
  })
})

it("removes parts that nobody will name", async () => {
  const orphan = segmentKey({ id: batch, epoch: 1 }, 9, "error")
  const gone = segmentKey({ id: "batch-gone", epoch: 1 }, 9, "error")
  for (const key of [orphan, gone, "batches/odd"]) await put(key, "x")
  const odd =
    "blob batches/odd: it lies among the parts of batches, but its key is none of theirs (-)"
  const lost = (key: string) => `blob ${key}: no part names it, and none will (it is removed)`
  expect((await texts()).sort()).toEqual([lost(gone), odd].sort())
  time.aheadMs = 2 * hourMs
  expect((await texts()).sort()).toEqual([lost(orphan), lost(gone), odd].sort())
  await repairAll()
  expect([await texts(), await work.parts()]).toEqual([[odd], ["batches/odd"]])
  await Effect.runPromise(work.deps.storage.remove("batches/odd"))
})
