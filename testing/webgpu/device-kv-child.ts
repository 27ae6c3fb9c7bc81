import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Tensor } from "onnxruntime-node"
import { openInProcess } from "../../plugins/backend-onnx/generation/testing/in-process.ts"
import {
  floats,
  longs,
  openSession,
  type Session,
  useDevice,
} from "../../plugins/backend-onnx/onnx/onnx-session.ts"
import { DeviceKv, type DeviceStore } from "../../plugins/backend-onnx/sessions/device-kv.ts"
import type { KvBlock } from "../../plugins/backend-onnx/sessions/kv-store.ts"
import { makeSessions } from "../../plugins/backend-webgpu/process/session.ts"
import type { Chat, DeviceResult, DeviceTask, Move } from "./device-kv-task.ts"

// A process of its own, as ONNX Runtime's provider may end it.
const task = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as DeviceTask

/** Buffers for keys and values that are there now. */
let live = 0
/** How many numbers went between the CPU and the device, by decode step. */
let steps: number[] = []

const onCpu = (tensors: Readonly<Record<string, Tensor>>): number =>
  Object.values(tensors)
    .filter(({ location }) => location === "cpu")
    .reduce((sum, { size }) => sum + size, 0)

const watched = (session: Session, keepsOutputs: boolean): Session => ({
  ...session,
  run: async (feeds, fetches) => {
    const outputs = await session.run(feeds, fetches)
    if (feeds.x?.dims[1] === 1) steps.push(onCpu(feeds) + onCpu(outputs))
    for (const tensor of keepsOutputs ? Object.values(outputs) : []) {
      live++
      const dispose = tensor.dispose.bind(tensor)
      tensor.dispose = () => {
        live--
        dispose()
      }
    }
    return outputs
  },
})

const sessions = makeSessions({
  opening: () => {},
  lost: (reason) => {
    throw new Error(reason)
  },
})
useDevice({
  openSession: async (path, threads, options = {}) =>
    watched(
      (await sessions.openSession(path, threads, options)) as Session,
      options.keepsOutputs === true,
    ),
})

/** Runs the moves of a script, and returns what its stores hold then, store by store. */
const runMoves = async (moves: readonly Move[]): Promise<number[][]> => {
  const { folder, shape } = task
  const kv = await DeviceKv.open(folder, shape)
  const copyOut = await openSession(join(folder, "copy.onnx"), 1)
  const upload = await openSession(join(folder, "kv-move.onnx"), 1)
  const stores: DeviceStore[] = []
  const blocks: KvBlock[] = []
  const fill = async (store: DeviceStore, row: number, from: number): Promise<void> => {
    const { kvHeads, headSize } = shape
    const [count, into] = [store.capacity, await store.ready(store.rows)]
    const places: number[] = []
    for (let head = 0; head < kvHeads; head++)
      for (let token = 0; token < count; token++) places.push(row, head, token)
    const feeds: Record<string, Tensor> = {
      starts: longs([0, 0, 0, 0]),
      ends: longs([1, kvHeads, count, headSize]),
      places: longs(places, [1, kvHeads, count, 3]),
    }
    const fetches: Record<string, Tensor> = {}
    for (const [i, tensor] of into.entries()) {
      const numbers = Float32Array.from(
        { length: kvHeads * count * headSize },
        (_, at) => from + i * 1000 + at,
      )
      feeds[`from.${i}`] = floats(numbers, [1, kvHeads, count, headSize])
      feeds[`into.${i}`] = tensor
      fetches[`out.${i}`] = tensor
    }
    await upload.run(feeds, fetches)
  }
  for (const move of moves)
    if (move.type === "store") {
      const store = kv.store(move.rows, move.capacity)
      stores.push(store)
      for (let row = 0; row < move.rows; row++) await fill(store, row, move.from + row * 10_000)
    } else if (move.type === "copyRow")
      stores[move.into]!.copyRow(move.intoRow, stores[move.from]!, move.fromRow, move.count)
    else if (move.type === "read")
      blocks.push(
        stores[move.from]!.read(move.row, move.first, move.count, blocks[move.reused ?? -1]),
      )
    else if (move.type === "restore")
      stores[move.into]!.restore(move.row, move.first, move.count, blocks[move.block]! as never)
    else stores[move.store]!.clear(move.row)
  const held: number[][] = []
  for (const store of stores) {
    const arrays: number[] = []
    for (const tensor of await store.ready(store.rows))
      arrays.push(...((await copyOut.run({ x: tensor })).copy!.data as Float32Array))
    held.push(arrays)
    store.release()
  }
  for (const block of new Set(blocks)) block.release()
  await kv.close()
  return held
}

const openChat = (chat: Chat) =>
  openInProcess({
    path: chat.path,
    graphs: join(task.folder, "graphs"),
    prefixCacheBytes: chat.prefixCacheBytes,
    adapters: chat.adapters,
    adapterBytes: 2 ** 24,
    device: { hasFp16: false, maxBufferBytes: chat.maxBufferBytes },
  })

const runChat = async (chat: Chat) => {
  const engine = await openChat(chat)
  const before = live
  const rounds = []
  for (const asks of chat.rounds) {
    steps = []
    const said = await Promise.all(
      asks.map(({ promptIds, ...ask }) =>
        engine.ask({ ...ask, promptIds: Int32Array.from(promptIds) }),
      ),
    )
    const texts = said.map(({ text }) => text)
    const read = said.map(({ cacheReadTokens }) => cacheReadTokens)
    rounds.push({ texts, read, most: Math.max(...steps), ends: said.map(({ end }) => end ?? null) })
  }
  const after = live
  await engine.close()
  const held = { byRequests: after - before, byClosed: live - before }
  return { rounds, ...held, window: engine.info.contextTokens }
}

const result: DeviceResult = { moves: [], live: 0, chats: [] }
for (const moves of task.scripts) result.moves.push(await runMoves(moves))
result.live = live
for (const chat of task.chats) result.chats.push(await runChat(chat))
writeFileSync(process.argv[3]!, JSON.stringify(result))
// native destructors may crash
process.kill(process.pid, "SIGKILL")
