import type { DecoderShape } from "../architectures/decoder-config.ts"
import { floats, longs, openSession, type Session } from "../onnx/onnx-session.ts"
import type { DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"
import { type ExportedModel, exportedShape } from "./exported-config.ts"

type Feeds = Record<string, ReturnType<typeof floats>>

/** One row of a pass. */
interface Row {
  readonly index: number
  readonly ids: readonly number[]
  /** The number of cached tokens. */
  readonly before: number
}

/**
 * A session of a ready-made export, which takes the past and returns the whole present. Exports
 * treat masks with holes differently, so the rows of a pass
 * run one by one, each with exactly its own past: correct for all exports, and slow, because keys
 * and values are copied twice for each token.
 */
export class ExportedSession implements DecoderSession {
  readonly shape: DecoderShape
  /** What it does inside is not known. */
  readonly isInvariant = false
  private readonly session: Session
  private readonly inputs: ReadonlySet<string>

  private constructor(shape: DecoderShape, session: Session) {
    this.shape = shape
    this.session = session
    this.inputs = new Set(session.inputs.map(({ name }) => name))
  }

  static async open(model: ExportedModel, threads: number): Promise<ExportedSession> {
    const session = await openSession(model.graph, threads)
    try {
      return new ExportedSession(exportedShape(model, session.inputs, session.outputs), session)
    } catch (cause) {
      await session.release()
      throw cause
    }
  }

  async forward(pass: ForwardPass): Promise<DecoderOutput> {
    const { layers, kvHeads, headSize, vocabulary } = this.shape
    const logits = new Float32Array(pass.logitsAt.length * vocabulary)
    const fresh = new Float32Array(2 * layers * pass.rows * pass.count * kvHeads * headSize)
    for (let index = 0; index < pass.rows; index++) {
      const ids = Array.from({ length: pass.count }, (_, i) => pass.ids[index * pass.count + i]!)
      const row = { index, ids, before: pass.pastLens[index]! }
      const answer = await this.session.run(this.feeds(pass, row))
      this.takeLogits(pass, row, answer.logits!.data as Float32Array, logits)
      for (let i = 0; i < 2 * layers; i++)
        this.takeFresh(pass, row, i, answer[presentName(i)]!.data as Float32Array, fresh)
    }
    return { logits, fresh }
  }

  private feeds(pass: ForwardPass, { index, ids, before }: Row): Feeds {
    const { layers, kvHeads, headSize } = this.shape
    const count = ids.length
    const feeds: Feeds = {
      input_ids: longs(ids, [1, count]),
      attention_mask: longs(new Array<number>(before + count).fill(1), [1, before + count]),
    }
    const positions = ids.map((_, i) => before + i)
    if (this.inputs.has("position_ids")) feeds.position_ids = longs(positions, [1, count])
    // 0 stands for all tokens
    if (this.inputs.has("num_logits_to_keep")) feeds.num_logits_to_keep = longs([0], [])
    for (let i = 0; i < 2 * layers; i++) {
      const exact = new Float32Array(kvHeads * before * headSize)
      for (let head = 0; head < kvHeads; head++) {
        const from = (index * kvHeads + head) * pass.capacity * headSize
        exact.set(pass.past[i]!.subarray(from, from + before * headSize), head * before * headSize)
      }
      feeds[pastName(i)] = floats(exact, [1, kvHeads, before, headSize])
    }
    return feeds
  }

  private takeLogits(
    pass: ForwardPass,
    { index, ids }: Row,
    found: Float32Array,
    into: Float32Array,
  ): void {
    const { vocabulary } = this.shape
    for (const [i, at] of pass.logitsAt.entries()) {
      const own = at - index * ids.length
      if (own >= 0 && own < ids.length)
        into.set(found.subarray(own * vocabulary, (own + 1) * vocabulary), i * vocabulary)
    }
  }

  /** Copies the new tokens out of the present, `[1, kvHeads, before + count, headSize]`. */
  private takeFresh(
    pass: ForwardPass,
    { index, ids, before }: Row,
    array: number,
    present: Float32Array,
    into: Float32Array,
  ): void {
    const { kvHeads, headSize } = this.shape
    for (const token of ids.keys())
      for (let head = 0; head < kvHeads; head++) {
        const from = (head * (before + ids.length) + before + token) * headSize
        into.set(
          present.subarray(from, from + headSize),
          (((array * pass.rows + index) * ids.length + token) * kvHeads + head) * headSize,
        )
      }
  }

  close(): Promise<void> {
    return this.session.release()
  }
}

const kind = (array: number): string => `${array >> 1}.${array % 2 ? "value" : "key"}`
const pastName = (array: number): string => `past_key_values.${kind(array)}`
const presentName = (array: number): string => `present.${kind(array)}`
