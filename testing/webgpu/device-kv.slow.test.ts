import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { openInProcess } from "../../plugins/backend-onnx/generation/testing/in-process.ts"
import { writeGraph } from "../../plugins/backend-onnx/onnx/graph-cache.ts"
import { writeKvGraphs } from "../../plugins/backend-onnx/sessions/device-kv.ts"
import { type HostBlock, KvBank } from "../../plugins/backend-onnx/sessions/kv-bank.ts"
import type { KvBlock } from "../../plugins/backend-onnx/sessions/kv-store.ts"
import { fixtureFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import type { Chat, DeviceResult, DeviceTask, Move } from "./device-kv-task.ts"
import { noDevice, settingsOf } from "./test-device.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-device-kv-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const shape = { layers: 2, kvHeads: 2, headSize: 4 }

const runOnDevice = (task: Pick<DeviceTask, "scripts" | "chats">): DeviceResult => {
  writeKvGraphs(root, shape)
  writeGraph(root, { graph: "copy.onnx", weights: "copy.bin" }, (graph) => {
    graph.input("x", "float", ["A", "B", "C", "D"])
    const copy = graph.node("Mul", ["x", graph.floats(1)])
    graph.output("copy", copy, "float", ["A", "B", "C", "D"])
  })
  const [file, done] = [join(root, "task.json"), join(root, "result.json")]
  writeFileSync(file, JSON.stringify({ folder: root, shape, ...task } satisfies DeviceTask))
  const { driver } = settingsOf({})
  const child = fileURLToPath(new URL("./device-kv-child.ts", import.meta.url))
  const ran = spawnSync(process.execPath, ["--import", "tsx", child, file, done], {
    encoding: "utf8",
    env: { ...process.env, ...(driver && { VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver }) },
  })
  if (!existsSync(done)) throw new Error(`${ran.status ?? ran.signal}\n${ran.stderr}`)
  return JSON.parse(readFileSync(done, "utf8")) as DeviceResult
}

/** Some stores, then moves between them: within a row's capacity, never over the row itself. */
const randomScript = (): readonly Move[] => {
  const below = (limit: number) => Math.floor(Math.random() * limit)
  const stores = [1, 3, 2].map((rows, i) => ({ rows, capacity: [16, 24, 32][i]! }))
  const moves: Move[] = stores.map((store, i) => ({ type: "store", ...store, from: i * 100_000 }))
  const blocks: { count: number; isFree: boolean }[] = []
  const pick = () => {
    const store = below(stores.length)
    return { store, row: below(stores[store]!.rows), capacity: stores[store]!.capacity }
  }
  const span = (capacity: number, most = capacity) => {
    const first = below(capacity)
    return { first, count: 1 + below(Math.min(most, capacity - first)) }
  }
  for (let i = 0; i < 14; i++) {
    const { store, row, capacity } = pick()
    const other = pick()
    const kind = below(8)
    if (kind < 3 && (other.store !== store || other.row !== row))
      moves.push({
        type: "copyRow",
        ...{ into: store, intoRow: row, from: other.store, fromRow: other.row },
        count: below(Math.min(capacity, other.capacity) + 1),
      })
    else if (kind < 5) {
      const { first, count } = span(capacity)
      const reused = blocks.findIndex((block) => block.isFree && block.count === count)
      if (reused >= 0) blocks[reused] = { count: 0, isFree: false }
      moves.push({ type: "read", from: store, row, first, count, ...(reused >= 0 && { reused }) })
      blocks.push({ count, isFree: below(2) === 0 })
    } else if (kind < 7) {
      const block = blocks.findIndex(({ count }) => count > 0)
      if (block < 0) continue
      const { first, count } = span(capacity, blocks[block]!.count)
      moves.push({ type: "restore", into: store, row, first, count, block })
    } else moves.push({ type: "clear", store, row })
  }
  return moves
}

/** What the stores hold, in memory. */
const inMemory = (moves: readonly Move[]): number[][] => {
  const stores: KvBank[] = []
  const blocks: KvBlock[] = []
  for (const move of moves)
    if (move.type === "store") {
      const bank = new KvBank(shape, move.rows, move.capacity)
      const size = shape.kvHeads * move.capacity * shape.headSize
      for (const [i, array] of bank.arrays.entries())
        for (let at = 0; at < array.length; at++)
          array[at] = move.from + Math.floor(at / size) * 10_000 + i * 1000 + (at % size)
      stores.push(bank)
    } else if (move.type === "copyRow")
      stores[move.into]!.copyRow(move.intoRow, stores[move.from]!, move.fromRow, move.count)
    else if (move.type === "read")
      blocks.push(
        stores[move.from]!.read(move.row, move.first, move.count, blocks[move.reused ?? -1]),
      )
    else if (move.type === "restore")
      stores[move.into]!.restore(move.row, move.first, move.count, blocks[move.block]! as HostBlock)
    else stores[move.store]!.clear(move.row)
  return stores.map(({ arrays }) => arrays.flatMap((array) => [...array]))
}

const content = tinyLlama(4)
const metadata = { ...content.metadata, "llama.context_length": 4096 }
const path = join(root, "tiny.gguf")
writeFileSync(path, writeGguf({ ...content, metadata }))

/** A prompt of `length` tokens; the same seed gives the same beginning. */
const prompt = (length: number, seed = 1): readonly number[] =>
  Array.from({ length }, (_, i) => 3 + ((i * 7919 + seed * 104_729 + i * i) % 250))
const sampler = {
  ...{ frequencyPenalty: 0, presencePenalty: 0, topP: 1, temperature: 0 },
  logitBias: [[1, -100] as const, [2, -100] as const],
}
const ask = (length: number, maxTokens: number, more: object = {}) => ({
  ...{ promptIds: prompt(length, length), maxTokens, sampler },
  ...more,
})

const plain = {
  ...{ path, adapters: [], prefixCacheBytes: 0, maxBufferBytes: 2 ** 27 },
  rounds: [
    [ask(5, 12)],
    [ask(700, 12)],
    // they join and leave in the middle, one by cancelling; several answers share a prompt
    [
      ask(3, 30),
      ask(70, 4),
      ask(130, 9, { furtherSeeds: [2, 3] }),
      ask(20, 40, { cancelAfter: 9 }),
      ask(126, 20),
    ],
  ],
} satisfies Chat
const repeated = {
  ...{ path, adapters: [], prefixCacheBytes: 2 ** 24, maxBufferBytes: 2 ** 27 },
  rounds: [1, 2].map(() => [ask(200, 8, { cacheBreakpoints: [192] })]),
} satisfies Chat
/** Rows of 512 tokens at most: what lies together has as many. */
const narrow = {
  ...plain,
  maxBufferBytes: 512 * 4 * 32,
  rounds: [[ask(100, 60), ask(110, 60), ask(90, 60)]],
} satisfies Chat
const folder = fixtureFolder("llama")
const adapted = {
  ...plain,
  path: folder,
  adapters: [{ id: "legal", path: join(fixtureFolder("llama-adapters"), "legal") }],
  rounds: [
    [
      ask(9, 12, { adapter: { id: "legal", strength: 1 } }),
      ask(9, 12, { adapter: { id: "legal", strength: 0.5 } }),
      ask(9, 12),
    ],
  ],
} satisfies Chat

/** What the CPU says to the same requests. */
const onCpu = async ({ maxBufferBytes: _, rounds, ...spec }: Chat) => {
  const engine = await openInProcess({ ...spec, graphs: join(root, "graphs") })
  const all = []
  for (const asks of rounds) {
    const said = await Promise.all(
      asks.map(({ promptIds, ...more }) =>
        engine.ask({ ...more, promptIds: Int32Array.from(promptIds) }),
      ),
    )
    all.push({
      texts: said.map(({ text }) => text),
      ends: said.map(({ end }) => end ?? null),
    })
  }
  await engine.close()
  return all
}

describe.skipIf(noDevice)("keys and values on a device", { timeout: 240_000 }, () => {
  const scripts = Array.from({ length: 12 }, randomScript)
  const chats: readonly Chat[] = [plain, repeated, narrow, adapted]
  let result: DeviceResult
  beforeAll(() => {
    result = runOnDevice({ scripts, chats })
  }, 240_000)

  test("are moved as in memory, and leave no buffer behind", () => {
    const { moves, live } = result
    for (const [i, script] of scripts.entries())
      expect(moves[i], JSON.stringify(script)).toEqual(inMemory(script))
    expect(live).toBe(0)
  })

  test.each([
    ["rows that join and leave", 0],
    ["prompts from the prefix cache", 1],
    ["several rows within small buffers", 2],
    ["LoRAs beside each other", 3],
  ] as const)("%s say what they say on the CPU", async (_, at) => {
    const { rounds } = result.chats[at]!
    expect(rounds.map(({ texts, ends }) => ({ texts, ends }))).toEqual(await onCpu(chats[at]!))
  })

  test("of ended requests and closed models give their buffers back", () => {
    const { chats } = result
    const [plain, repeated, narrow, adapted] = chats.map(({ byRequests }) => byRequests)
    expect([plain, narrow]).toEqual([0, 0])
    // blocks of the prefix cache, and weights of LoRAs
    for (const kept of [repeated, adapted]) expect(kept).toBeGreaterThan(0)
    expect(chats.map(({ byClosed }) => byClosed)).toEqual([0, 0, 0, 0])
    expect(chats[1]!.rounds.map(({ read }) => read)).toEqual([[0], [192]])
  })

  test("stay there: a step sends and gets as many numbers behind 700 tokens as behind 5", () => {
    const [short, long] = result.chats[0]!.rounds
    expect(short!.most).toBeGreaterThan(0)
    expect(long!.most).toBe(short!.most)
  })

  test("bound the window where a buffer is small", () => {
    expect(result.chats[2]!.window).toBe(384)
    expect(result.chats[0]!.window).toBe(4096)
  })
})
