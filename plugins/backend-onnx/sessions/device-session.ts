import { join } from "node:path"
import type { DecoderConfig, DecoderShape } from "../architectures/decoder-config.ts"
import { graphFile } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Port, type Session } from "../onnx/onnx-session.ts"
import type { Tensor } from "../onnx/runtime.ts"
import type { AdapterFeeds } from "./adapter-feeds.ts"
import { smallChunk, takesLargeChunks } from "./attention-probe.ts"
import { type Embed, rowsOf } from "./built-session.ts"
import type { DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"
import { DeviceAdapters } from "./device-adapters.ts"
import { DeviceKv, type DeviceStore } from "./device-kv.ts"
import { positionsOf } from "./token-places.ts"

const none = new Float32Array()

interface DeviceModel {
  readonly shape: DecoderShape & Pick<DecoderConfig, "heads">
  readonly embed: Embed
  readonly maxBufferBytes: number
}

/** A session of a graph for a device, where keys and values stay between passes. */
export class DeviceSession implements DecoderSession {
  readonly shape: DecoderShape
  /** A device chooses its kernels by the shape of a pass. */
  readonly isInvariant = false
  readonly mostTokens: number
  private readonly session: Session
  private readonly kv: DeviceKv
  private readonly embed: Embed
  private readonly adapters: DeviceAdapters | undefined
  /** The most new tokens of a row that a pass takes. */
  private readonly chunk: number

  private constructor(
    session: Session,
    kv: DeviceKv,
    { shape, embed, chunk, maxBufferBytes }: DeviceModel & { readonly chunk: number },
    adapters?: DeviceAdapters,
  ) {
    this.chunk = chunk
    this.shape = shape
    this.mostTokens = Math.floor(maxBufferBytes / (shape.kvHeads * shape.headSize * 4))
    this.session = session
    this.kv = kv
    this.embed = embed
    this.adapters = adapters
  }

  static async open(
    folder: string,
    threads: number,
    model: DeviceModel,
    readAdapters?: (inputs: readonly Port[]) => AdapterFeeds,
  ): Promise<DeviceSession> {
    const session = await openSession(join(folder, graphFile), threads)
    try {
      const feeds = readAdapters?.(session.inputs)
      const adapters = feeds && (await DeviceAdapters.open(folder, feeds))
      const kv = await DeviceKv.open(folder, model.shape)
      const isLarge = await takesLargeChunks(folder, kv, model.shape)
      const chunk = isLarge ? Number.POSITIVE_INFINITY : smallChunk
      return new DeviceSession(session, kv, { ...model, chunk }, adapters)
    } catch (cause) {
      await session.release()
      throw cause
    }
  }

  newStore(capacity: number): DeviceStore {
    return this.kv.store(1, capacity)
  }

  async forward(pass: ForwardPass): Promise<DecoderOutput> {
    const { first } = pass.stored!
    const store = pass.stored!.store as DeviceStore
    if (first === 0) return this.run(pass, store)
    // a view of a buffer begins at its first row; others are tried alone after a pass has failed
    const [past] = pass.pastLens
    const own = this.kv.store(1, store.capacity)
    try {
      own.copyRow(0, store, first, past!)
      const output = await this.run(pass, own)
      store.takeBack(first, past!, pass.count, own)
      return output
    } finally {
      own.release()
    }
  }

  /** One row's tokens go in as many passes as the device needs. */
  private async run(pass: ForwardPass, store: DeviceStore): Promise<DecoderOutput> {
    if (pass.count <= this.chunk) return this.runAtOnce(pass, store)
    const logits: Float32Array[] = []
    for (let from = 0; from < pass.count; from += this.chunk) {
      const to = Math.min(pass.count, from + this.chunk)
      const embedded = [...(pass.embedded ?? [])].filter(([at]) => at >= from && at < to)
      const part = await this.runAtOnce(
        {
          ...pass,
          count: to - from,
          ids: Array.from({ length: to - from }, (_, i) => pass.ids[from + i]!),
          embedded: new Map(embedded.map(([at, row]) => [at - from, row])),
          pastLens: [pass.pastLens[0]! + from],
          logitsAt: pass.logitsAt.filter((at) => at >= from && at < to).map((at) => at - from),
        },
        store,
      )
      logits.push(part.logits)
    }
    return { logits: Float32Array.from(logits.flatMap((part) => [...part])), fresh: none }
  }

  private async runAtOnce(pass: ForwardPass, store: DeviceStore): Promise<DecoderOutput> {
    const { rows, count, pastLens, logitsAt, adapters } = pass
    const x = rowsOf(this.embed, pass)
    const positions = positionsOf(this.shape, pass)
    const feeds: Record<string, Tensor> = {
      x: floats(x, [rows, count, x.length / (rows * count)]),
      position_ids: longs(positions.values, positions.dimensions),
      last: longs(pastLens.map((length) => length + count - 1)),
      longest: longs([Math.max(...pastLens) + count]),
      logit_idx: longs(logitsAt),
      ...(await this.adapters?.forRows(adapters ?? Array.from({ length: rows }, () => undefined))),
    }
    const fetches: Record<string, Tensor | null> = { logits: null }
    for (const [i, tensor] of (await store.ready(rows)).entries()) {
      const name = `${i >> 1}.${i % 2 ? "v" : "k"}`
      feeds[`past.${name}`] = tensor
      fetches[`present.${name}`] = tensor
    }
    const { logits } = await this.session.run(feeds, fetches)
    return { logits: logits!.data as Float32Array, fresh: none }
  }

  adapterBytes(): number {
    return this.adapters?.bytes ?? 0
  }

  async close(): Promise<void> {
    await this.kv.close()
    await this.adapters?.close()
    await this.session.release()
  }
}
