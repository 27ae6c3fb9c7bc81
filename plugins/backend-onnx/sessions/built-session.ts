import { join } from "node:path"
import type { DecoderShape } from "../architectures/decoder-config.ts"
import { graphFile } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Port, type Session } from "../onnx/onnx-session.ts"
import type { AdapterFeeds } from "./adapter-feeds.ts"
import type { DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"

/** Returns the embeddings of tokens, `[ids.length, width]`. */
export type Embed = (ids: ArrayLike<number>) => Float32Array

/**
 * A session of a graph that this backend built: it returns only the new keys and values, so the
 * cache is never copied.
 */
export class BuiltSession implements DecoderSession {
  readonly shape: DecoderShape
  readonly isInvariant = true
  private readonly session: Session
  private readonly embed: Embed
  private readonly adapters: AdapterFeeds | undefined

  private constructor(
    shape: DecoderShape,
    session: Session,
    embed: Embed,
    adapters: AdapterFeeds | undefined,
  ) {
    this.shape = shape
    this.session = session
    this.embed = embed
    this.adapters = adapters
  }

  static async open(
    folder: string,
    threads: number,
    shape: DecoderShape,
    embed: Embed,
    readAdapters?: (inputs: readonly Port[]) => AdapterFeeds,
  ): Promise<BuiltSession> {
    const session = await openSession(join(folder, graphFile), threads)
    try {
      return new BuiltSession(shape, session, embed, readAdapters?.(session.inputs))
    } catch (cause) {
      await session.release()
      throw cause
    }
  }

  async forward({
    rows,
    count,
    ids,
    pastLens,
    past,
    capacity,
    logitsAt,
    adapters,
    long,
  }: ForwardPass): Promise<DecoderOutput> {
    const { kvHeads, headSize, longAfter = 0 } = this.shape
    // rows of the rotary tables
    const firsts = pastLens.map((length, row) => length + (long?.[row] ? longAfter : 0))
    const x = this.embed(ids)
    const feeds: Record<string, ReturnType<typeof floats>> = {
      x: floats(x, [rows, count, x.length / (rows * count)]),
      position_ids: longs(
        Array.from(
          { length: rows * count },
          (_, i) => firsts[Math.floor(i / count)]! + (i % count),
        ),
        [rows, count],
      ),
      past_lens: longs(pastLens),
      logit_idx: longs(logitsAt),
      ...this.adapters?.forRows(adapters ?? Array.from({ length: rows }, () => undefined)),
    }
    const cached = [rows, kvHeads, capacity, headSize]
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
