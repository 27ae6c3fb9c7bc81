import { randomUUID } from "node:crypto"
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  unlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type Settlement, usageOf, uuidV7 } from "../../core/index.ts"
import { mountSmallDisk } from "../../testing/small-disk.ts"
import {
  lineOf,
  makeSettlementJournal,
  type SettlementJournal,
  settlementsIn,
} from "./settlement-journal.ts"

let folder: string
const opened: SettlementJournal[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rakit-journal-"))
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => run(close)))
  await rm(folder, { recursive: true, force: true })
})

const run = Effect.runPromise
const lines = (of: readonly Settlement[]) => of.map(lineOf)
const items = (n: number): readonly Settlement[] =>
  Array.from({ length: n }, (_, i) => ({
    id: uuidV7(i),
    outcome: "settled",
    costMicros: 2n ** 60n + BigInt(i),
    usage: { "a model\nof two lines": usageOf({ inputTokens: i }) },
    httpStatus: 200,
  }))
const small = { reservedBytes: 4_096, maxBytes: 100_000 }
const fresh = (replica: string = randomUUID()) => {
  const journal = makeSettlementJournal(folder, replica, small)
  opened.push(journal)
  return { replica, path: join(folder, `${replica}.jsonl`), journal }
}
/** What a process that starts after a kill finds. */
const found = async (replica: string) => (await run(fresh().journal.others)).get(replica) ?? []

test("what is appended is found by the next process, in order, beyond the reserved room, too", async () => {
  const { replica, journal } = fresh()
  const all = items(100)
  for (let i = 0; i < 100; i += 10) await run(journal.append(lines(all.slice(i, i + 10))))
  expect(await found(replica)).toEqual(all)
})

test("appends at the same time lose nothing", async () => {
  const { replica, journal } = fresh()
  const all = items(50)
  await run(
    Effect.forEach(all, (item) => journal.append(lines([item])), { concurrency: "unbounded" }),
  )
  expect(await found(replica)).toEqual(all)
})

test("a torn line is skipped, whatever byte it is torn at", async () => {
  const { replica, journal, path } = fresh()
  const all = items(3)
  await run(journal.append(lines(all)))
  const text = (await readFile(path, "utf8")).replaceAll("\0", "")
  for (let length = 0; length <= text.length; length++) {
    const whole = text.slice(0, length).split("\n").length - 1
    const torn = settlementsIn(text.slice(0, length))
    expect([whole, whole + 1]).toContain(torn.length)
    expect(all.slice(0, torn.length)).toEqual(torn)
  }
  await truncate(path, text.length - 5)
  await appendFile(path, "\0\0\0")
  expect(await found(replica)).toEqual(all.slice(0, 2))
})

test("is written over from its front, and what is torn then is of neither line", async () => {
  const { replica, journal, path } = fresh()
  const [old, kept, ...later] = [items(20), items(21).slice(20), ...items(24).slice(21)]
  await run(journal.append(lines([...old, ...kept])))
  const before = await readFile(path)
  expect(await run(journal.rewind(() => undefined))).toBe(false)
  expect(await run(journal.rewind(() => lines([...old, ...kept])))).toBe(false)
  expect(await readFile(path)).toEqual(before)
  expect(await run(journal.rewind(() => lines(kept)))).toBe(true)
  for (const item of later) await run(journal.append(lines([item]), { flush: false }))
  expect((await found(replica)).slice(0, 4)).toEqual([...kept, ...later])
  const after = await readFile(path)
  const ids = new Map([...old, ...kept, ...later].map((item) => [item.id, item]))
  for (let torn = 0; torn <= journal.bytes(); torn++) {
    const read = settlementsIn(
      Buffer.concat([after.subarray(0, torn), before.subarray(torn)]).toString(),
    )
    for (const item of read) expect(item).toMatchObject(ids.get(item.id)!)
  }
  await run(journal.clear(() => true))
  expect(await found(replica)).toEqual([])
  expect((await stat(path)).size).toBe(small.reservedBytes)
})

test("a rewind that is killed at any byte loses nothing that counts", async () => {
  const { journal, path } = fresh()
  const all = items(8)
  await run(journal.append(lines(all)))
  const [before, end] = [await readFile(path), journal.bytes()]
  // the first has settled, so that each of them moves by less than its length
  const counted = all.slice(1, 4)
  expect(await run(journal.rewind(() => lines(counted)))).toBe(true)
  const [after, length] = [await readFile(path), journal.bytes()]
  const ids = (file: Buffer) => new Set(settlementsIn(file.toString()).map(({ id }) => id))
  const cut = (first: Buffer, then: Buffer, at: number) =>
    Buffer.concat([first.subarray(0, at), then.subarray(at)])
  for (let torn = 0; torn <= length; torn += 3) {
    const copying = cut(cut(before, after, end), before, end + torn)
    const copied = cut(before, after, end)
    for (const file of [copying, cut(after, copied, torn)])
      expect(counted.every(({ id }) => ids(file).has(id))).toBe(true)
  }
})

test("is emptied, unless something was kept meanwhile, and goes when it is closed", async () => {
  const { replica, journal, path } = fresh()
  await run(journal.append(lines(items(40))))
  await run(journal.clear(() => false))
  expect(await found(replica)).toHaveLength(40)
  await run(journal.clear(() => true))
  expect(await found(replica)).toEqual([])
  expect((await stat(path)).size).toBe(small.reservedBytes)
  await run(journal.append(lines(items(1))))
  expect(await found(replica)).toHaveLength(1)
  await run(journal.clear(() => true))
  await run(journal.close)
  expect(await readdir(folder)).toEqual([])
})

test("a file with something in it stays when it is closed, for its owner only", async () => {
  const { replica, journal, path } = fresh()
  await run(journal.append(lines(items(1))))
  await run(journal.close)
  expect(await found(replica)).toHaveLength(1)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test("what comes after it was closed is kept beside what came before", async () => {
  const { replica, journal } = fresh()
  const all = items(3)
  await run(journal.append(lines(all.slice(0, 2))))
  await run(journal.close)
  await run(journal.append(lines(all.slice(2))))
  expect(await found(replica)).toEqual(all)
})

test("a file with more than was read stays", async () => {
  const [{ replica, journal }, other] = [fresh(), fresh()]
  const all = items(3)
  await run(journal.append(lines(all.slice(0, 2))))
  for (const known of [all.slice(0, 1), all.slice(1)]) {
    await run(other.journal.remove(replica, known))
    expect(await found(replica)).toHaveLength(2)
  }
  await run(other.journal.remove(replica, all))
  expect(await readdir(folder)).not.toContain(`${replica}.jsonl`)
})

test("a file that another server took is made again", async () => {
  const { replica, journal, path } = fresh()
  await run(journal.append(lines(items(2))))
  await unlink(path)
  const [, , third] = items(3)
  await run(journal.append(lines([third!])))
  expect(await found(replica)).toEqual([third])
})

test("has a largest size, and says so", async () => {
  const { replica, journal } = fresh()
  const error = await run(Effect.flip(journal.append(lines(items(1_000)))))
  expect(error).toMatchObject({ _tag: "PortError", port: "billing" })
  await run(journal.append(lines(items(3))))
  expect(await found(replica)).toHaveLength(3)
})

test("reads no files of others", async () => {
  await writeFile(join(folder, "notes.txt"), "{}")
  await writeFile(
    join(folder, "broken.jsonl"),
    '{"id":1}\nnull\n[]\n{"id":"a","outcome":"b","costMicros":"x"}\n',
  )
  expect(await run(fresh().journal.others)).toEqual(new Map([["broken", []]]))
})

test("a file that can't be read is not taken for an empty one, and stays", async () => {
  // a folder in its place: also root can't read it
  await mkdir(join(folder, "unreadable.jsonl"))
  const { journal } = fresh()
  expect(await run(journal.others)).toEqual(new Map([["unreadable", undefined]]))
  expect(await run(Effect.flip(journal.remove("unreadable", [])))).toMatchObject({
    message: expect.stringContaining("EISDIR"),
  })
})

const disk = mountSmallDisk()
test.skipIf(disk === undefined)("a full disk takes what fits into the reserved room", async () => {
  const replica = randomUUID()
  const journal = makeSettlementJournal(disk!, replica, small)
  await run(journal.open)
  await writeFile(join(disk!, "filler"), Buffer.alloc(64 * 2 ** 20)).catch(() => {})
  const five = items(5)
  await run(journal.append(lines(five)))
  expect(await run(Effect.flip(journal.append(lines(items(300)))))).toMatchObject({
    port: "billing",
  })
  const others = await run(makeSettlementJournal(disk!, randomUUID(), small).others)
  expect(others.get(replica)?.slice(0, 5)).toEqual(five)
  await run(journal.close)
})
