import { join } from "node:path"
import { writeGraph } from "../onnx/graph-cache.ts"
import { longs, openSession, type Session, viewOfRows } from "../onnx/onnx-session.ts"
import type { Tensor } from "../onnx/runtime.ts"
import type { KvBlock, KvShape, KvStore, StoredRows } from "./kv-store.ts"

const files = {
  zeros: { graph: "kv-zeros.onnx", weights: "kv-zeros.bin", target: "gpu" },
  move: { graph: "kv-move.onnx", weights: "kv-move.bin", target: "gpu" },
} as const

/** Writes the graphs that make stores on a device, and move tokens between them. */
export const writeKvGraphs = (folder: string, { layers, kvHeads, headSize }: KvShape): void => {
  const dims = (rows: string, tokens: string) => [rows, kvHeads, tokens, headSize]
  writeGraph(folder, files.zeros, (graph) => {
    graph.input("shape", "int64", [4])
    for (let i = 0; i < 2 * layers; i++)
      graph.output(
        `zeros.${i}`,
        graph.node("Expand", [graph.floats(0), "shape"]),
        "float",
        dims("B", "P"),
      )
  })
  writeGraph(folder, files.move, (graph) => {
    graph.input("starts", "int64", [4])
    graph.input("ends", "int64", [4])
    graph.input("places", "int64", [1, kvHeads, "N", 3])
    for (let i = 0; i < 2 * layers; i++) {
      graph.input(`from.${i}`, "float", dims("B", "P"))
      graph.input(`into.${i}`, "float", dims("B2", "P2"))
      const part = graph.node("Slice", [`from.${i}`, "starts", "ends"])
      const moved = graph.node("ScatterND", [`into.${i}`, "places", part])
      graph.output(`out.${i}`, moved, "float", dims("B2", "P2"))
    }
  })
}

/** Tokens `first` to `first + count` of a row. */
interface Span {
  readonly store: DeviceStore
  readonly row: number
  readonly first: number
}

/**
 * Memory for keys and values on a device. Stores are used at once and filled later: what is asked
 * is done in order, before the next pass.
 */
export class DeviceKv {
  readonly shape: KvShape
  /** The buffers of stores and blocks that are there now. */
  private readonly held = new Set<Promise<readonly Tensor[]>>()
  private readonly zeros: Session
  private readonly move: Session
  private last: Promise<unknown> = Promise.resolve()

  private constructor(shape: KvShape, zeros: Session, move: Session) {
    this.shape = shape
    this.zeros = zeros
    this.move = move
  }

  static async open(folder: string, shape: KvShape): Promise<DeviceKv> {
    const zeros = await openSession(join(folder, files.zeros.graph), 1, { keepsOutputs: true })
    try {
      return new DeviceKv(shape, zeros, await openSession(join(folder, files.move.graph), 1))
    } catch (cause) {
      await zeros.release()
      throw cause
    }
  }

  store(rows: number, capacity: number): DeviceStore {
    const tensors = this.inTurn(() => this.allocate(rows, capacity))
    this.held.add(tensors)
    return new DeviceStore(this, rows, capacity, tensors)
  }

  private async allocate(rows: number, capacity: number): Promise<readonly Tensor[]> {
    const { layers, kvHeads, headSize } = this.shape
    // one run: on a GPU the start of a run takes longer than the zeros of all layers
    const zeros = await this.zeros.run({ shape: longs([rows, kvHeads, capacity, headSize]) })
    return Array.from({ length: 2 * layers }, (_, i) => zeros[`zeros.${i}`]!)
  }

  dispose(tensors: Promise<readonly Tensor[]>): void {
    this.held.delete(tensors)
    this.inTurn(async () => {
      for (const tensor of await tensors) tensor.dispose()
    })
  }

  /** Copies tokens of a row to those of another. */
  copy(from: Span, into: Span, count: number): void {
    if (count === 0) return
    const { failure } = from.store
    const work = async () => {
      await failure
      await this.run(from, into, count)
    }
    into.store.failsWith(this.inTurn(work))
  }

  private async run(from: Span, into: Span, count: number): Promise<void> {
    const { kvHeads, headSize } = this.shape
    const places: number[] = []
    for (let head = 0; head < kvHeads; head++)
      for (let token = 0; token < count; token++) places.push(into.row, head, into.first + token)
    const [source, target] = [await from.store.tensors, await into.store.tensors]
    const feeds: Record<string, Tensor> = {
      starts: longs([from.row, 0, from.first, 0]),
      ends: longs([from.row + 1, kvHeads, from.first + count, headSize]),
      places: longs(places, [1, kvHeads, count, 3]),
    }
    const fetches: Record<string, Tensor> = {}
    for (const [i, tensor] of target.entries()) {
      feeds[`from.${i}`] = source[i]!
      feeds[`into.${i}`] = tensor
      fetches[`out.${i}`] = tensor
    }
    await this.move.run(feeds, fetches)
  }

  private inTurn<A>(work: () => Promise<A>): Promise<A> {
    const turn = this.last.then(work)
    // whoever needs it hears why it failed
    this.last = turn.catch(() => {})
    return turn
  }

  /** Gives all memory back, that of the prefix cache, too. */
  async close(): Promise<void> {
    for (const tensors of this.held) this.dispose(tensors)
    await this.last
    await this.move.release()
    await this.zeros.release()
  }
}

class DeviceBlock implements KvBlock {
  readonly store: DeviceStore

  constructor(store: DeviceStore) {
    this.store = store
  }

  get isLost(): boolean {
    return this.store.hasFailed
  }

  release(): void {
    this.store.release()
  }
}

/** Rows on the device, as `DeviceKv` makes them. */
export class DeviceStore implements KvStore {
  readonly rows: number
  readonly capacity: number
  /** Keys of layer 0, values of layer 0, keys of layer 1 ...: `[rows, kvHeads, capacity, headSize]`. */
  readonly tensors: Promise<readonly Tensor[]>
  private readonly kv: DeviceKv
  /** It has no buffers, or something could not be copied into them. */
  hasFailed = false
  /** Rejects when what was asked so far has failed. */
  failure: Promise<unknown> = Promise.resolve()

  constructor(kv: DeviceKv, rows: number, capacity: number, tensors: Promise<readonly Tensor[]>) {
    this.kv = kv
    this.rows = rows
    this.capacity = capacity
    this.tensors = tensors
    this.failsWith(tensors)
  }

  get shape(): KvShape {
    return this.kv.shape
  }

  /** What was asked of it fails with this work. */
  failsWith(work: Promise<unknown>): void {
    const before = this.failure
    this.failure = before.then(() => work)
    this.failure.catch(() => {
      this.hasFailed = true
    })
  }

  /** Keys and values of its first rows, once all that was asked is done. Rejects when that failed. */
  async ready(rows: number): Promise<readonly Tensor[]> {
    await this.failure
    const tensors = await this.tensors
    return rows === this.rows ? tensors : tensors.map((tensor) => viewOfRows(tensor, rows))
  }

  another(rows: number, capacity: number): DeviceStore {
    return this.kv.store(rows, capacity)
  }

  rowsFrom(first: number, count: number): { readonly past: []; readonly stored: StoredRows } {
    return { past: [], stored: { store: this, first, count } }
  }

  copyRow(row: number, from: DeviceStore, fromRow: number, tokens: number): void {
    const source = { store: from, row: fromRow, first: 0 }
    this.kv.copy(source, { store: this, row, first: 0 }, tokens)
  }

  /** Takes over `count` tokens of the only row of another store, from `first` on. */
  takeBack(row: number, first: number, count: number, from: DeviceStore): void {
    this.kv.copy({ store: from, row: 0, first }, { store: this, row, first }, count)
  }

  read(row: number, first: number, count: number, into?: KvBlock): KvBlock {
    const block = into instanceof DeviceBlock ? into : new DeviceBlock(this.kv.store(1, count))
    this.kv.copy({ store: this, row, first }, { store: block.store, row: 0, first: 0 }, count)
    return block
  }

  restore(row: number, first: number, count: number, from: DeviceBlock): void {
    this.kv.copy({ store: from.store, row: 0, first: 0 }, { store: this, row, first }, count)
  }

  clear(row: number): void {
    const zeros = this.kv.store(1, this.capacity)
    this.copyRow(row, zeros, 0, this.capacity)
    zeros.release()
  }

  /** The pass has written them; numbers that are not finite are seen in its logits. */
  write(): boolean {
    return true
  }

  release(): void {
    this.kv.dispose(this.tensors)
  }
}
