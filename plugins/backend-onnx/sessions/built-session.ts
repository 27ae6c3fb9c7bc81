import { join } from "node:path"
import type { DecoderShape } from "../architectures/decoder-config.ts"
import { graphFile } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Port, type Session } from "../onnx/onnx-session.ts"
import type { AdapterFeeds } from "./adapter-feeds.ts"
import type { DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"
import { positionsOf } from "./token-places.ts"

/** Returns the embeddings of tokens, `[ids.length, width]`. */
export type Embed = (ids: ArrayLike<number>) => Float32Array

/** How this CPU adds up the rows of a matrix product. */
export interface Rounding {
  /** A row that is alone gets other bits than in company, so it is computed twice. */
  readonly lonelyTwice: boolean
  /** Apart from that, a row has the same bits in any company and any chunks. */
  readonly isInvariant: boolean
}

export interface BuiltModel {
  readonly shape: DecoderShape
  readonly embed: Embed
  readonly rounding: Rounding
}

/** A second row with the same token, behind the same past. */
const twice = (pass: ForwardPass): ForwardPass => {
  const row = pass.embedded?.get(0)
  return {
    ...pass,
    rows: 2,
    ids: [pass.ids[0]!, pass.ids[0]!],
    pastLens: [pass.pastLens[0]!, pass.pastLens[0]!],
    ...(row && { embedded: new Map([0, 1].map((at) => [at, row])) }),
    ...(pass.places && { places: [pass.places[0], pass.places[0]] }),
    ...(pass.adapters && { adapters: [pass.adapters[0], pass.adapters[0]] }),
  }
}

/** The rows of tokens, and those that are given. */
export const rowsOf = (embed: Embed, { ids, embedded }: ForwardPass): Float32Array => {
  if (!embedded?.size) return embed(ids)
  const x = embed(Array.from(ids, (id, at) => (embedded.has(at) ? 0 : id)))
  const width = x.length / ids.length
  for (const [at, row] of embedded) x.set(row, at * width)
  return x
}

/**
 * A session of a graph that this backend built: it returns only the new keys and values, so the
 * cache is never copied.
 */
export class BuiltSession implements DecoderSession {
  readonly shape: DecoderShape
  readonly isInvariant: boolean
  private readonly session: Session
  private readonly embed: Embed
  private readonly adapters: AdapterFeeds | undefined
  private readonly lonelyTwice: boolean

  constructor(session: Session, { shape, embed, rounding }: BuiltModel, adapters?: AdapterFeeds) {
    this.shape = shape
    this.session = session
    this.embed = embed
    this.adapters = adapters
    this.isInvariant = rounding.isInvariant
    this.lonelyTwice = rounding.lonelyTwice
  }

  static async open(
    folder: string,
    threads: number,
    model: BuiltModel,
    readAdapters?: (inputs: readonly Port[]) => AdapterFeeds,
  ): Promise<BuiltSession> {
    const session = await openSession(join(folder, graphFile), threads)
    try {
      return new BuiltSession(session, model, readAdapters?.(session.inputs))
    } catch (cause) {
      await session.release()
      throw cause
    }
  }

  async forward(pass: ForwardPass): Promise<DecoderOutput> {
    if (!this.lonelyTwice) return this.run(pass)
    const { logitsAt } = pass
    const doubled = pass.rows * pass.count === 1 ? twice(pass) : pass
    const { logits, fresh } = await this.run({
      ...doubled,
      logitsAt: logitsAt.length === 1 ? [logitsAt[0]!, logitsAt[0]!] : logitsAt,
    })
    return {
      logits: logits.subarray(0, logitsAt.length * this.shape.vocabulary),
      fresh: doubled === pass ? fresh : this.firstOfTwo(fresh),
    }
  }

  private firstOfTwo(fresh: Float32Array): Float32Array {
    const width = this.shape.kvHeads * this.shape.headSize
    const first = new Float32Array(fresh.length / 2)
    for (let at = 0; at < first.length; at += width)
      first.set(fresh.subarray(2 * at, 2 * at + width), at)
    return first
  }

  private async run(pass: ForwardPass): Promise<DecoderOutput> {
    const { rows, count, pastLens, past, capacity, logitsAt, adapters } = pass
    const { kvHeads, headSize } = this.shape
    const positions = positionsOf(this.shape, pass)
    const x = rowsOf(this.embed, pass)
    const lora = this.adapters?.forRows(adapters ?? Array.from({ length: rows }, () => undefined))
    const feeds: Record<string, ReturnType<typeof floats>> = {
      x: floats(x, [rows, count, x.length / (rows * count)]),
      position_ids: longs(positions.values, positions.dimensions),
      past_lens: longs(pastLens),
      logit_idx: longs(logitsAt),
      ...lora?.weights,
      ...lora?.scales,
    }
    const cached = [past[0]!.length / (kvHeads * capacity * headSize), kvHeads, capacity, headSize]
    for (const [i, array] of past.entries())
      feeds[`past.${i >> 1}.${i % 2 ? "v" : "k"}`] = floats(array, cached)
    const { logits, new_kv: fresh } = await this.session.run(feeds)
    return { logits: logits!.data as Float32Array, fresh: fresh!.data as Float32Array }
  }

  adapterBytes(): number {
    return this.adapters?.bytes ?? 0
  }

  close(): Promise<void> {
    return this.session.release()
  }
}
