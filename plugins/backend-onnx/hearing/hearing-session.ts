import { join } from "node:path"
import { graphFile } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Session } from "../onnx/onnx-session.ts"
import type { HearingConfig, Spectrogram } from "./hearing-config.ts"

export const spectrogramFile = "spectrogram.onnx"
export const decoderFile = "decoder.onnx"

type Tensors = Awaited<ReturnType<Session["run"]>>

/** Logarithms of power, `[bins, frames]`. */
export interface Frames {
  readonly values: Float32Array
  readonly count: number
}

/** Frames of a run: a minute of speech bounds the memory that it takes. */
const framesAtOnce = 3000
/** What quieter than the loudest sound by so many powers of ten is taken as. */
const range = 8

/**
 * Samples `from` to `to` of sound with silence up to `length`, which is mirrored at both ends, as a
 * Fourier transform around each end reads it.
 */
const piece = (samples: Float32Array, length: number, from: number, to: number): Float32Array =>
  Float32Array.from({ length: to - from }, (_, i) => {
    const at = Math.abs(from + i)
    return samples[at < length ? at : 2 * (length - 1) - at] ?? 0
  })

/** Where a window of sound is being written down: its tokens so far, and what they left. */
export interface Writing {
  readonly cross: Tensors
  past: Tensors
  tokens: number
}

/** A Whisper model in ONNX Runtime. */
export class HearingSession {
  readonly config: HearingConfig
  private readonly spectrogram: Session
  private readonly encoder: Session
  private readonly decoder: Session

  private constructor(config: HearingConfig, sessions: readonly [Session, Session, Session]) {
    this.config = config
    const [spectrogram, encoder, decoder] = sessions
    this.spectrogram = spectrogram
    this.encoder = encoder
    this.decoder = decoder
  }

  static async open(
    folder: string,
    threads: number,
    config: HearingConfig,
  ): Promise<HearingSession> {
    const open: Session[] = []
    try {
      for (const file of [spectrogramFile, graphFile, decoderFile])
        open.push(await openSession(join(folder, file), threads))
    } catch (cause) {
      for (const session of open) await session.release()
      throw cause
    }
    return new HearingSession(config, open as [Session, Session, Session])
  }

  /** Frames of a window. */
  get windowFrames(): number {
    return 2 * this.config.states
  }

  /**
   * The spectrogram of mono samples, as Whisper's feature extractor makes it: sound that is shorter
   * than a window is followed by silence. `pause` is called between pieces.
   */
  async framesOf(samples: Float32Array, pause: () => Promise<void>): Promise<Frames> {
    const { hop, window, bins }: Spectrogram = this.config.spectrogram
    const length = Math.max(samples.length, this.windowFrames * hop)
    const count = Math.floor(length / hop)
    const values = new Float32Array(bins * count)
    let loudest = Number.NEGATIVE_INFINITY
    for (let first = 0; first < count; first += framesAtOnce) {
      const size = Math.min(framesAtOnce, count - first)
      const start = first * hop - window / 2
      const part = piece(samples, length, start, start + (size - 1) * hop + window)
      const { frames } = await this.spectrogram.run({ samples: floats(part, [part.length]) })
      const made = frames!.data as Float32Array
      for (const value of made) loudest = Math.max(loudest, value)
      for (let bin = 0; bin < bins; bin++)
        values.set(made.subarray(bin * size, (bin + 1) * size), bin * count + first)
      await pause()
    }
    for (let i = 0; i < values.length; i++)
      values[i] = (Math.max(values[i]!, loudest - range) + 4) / 4
    return { values, count }
  }

  /** Encodes the window from frame `first` on; beyond the last frame it has zeros. */
  async hear({ values, count }: Frames, first: number): Promise<Writing> {
    const { bins } = this.config.spectrogram
    const features = new Float32Array(bins * this.windowFrames)
    const size = Math.min(this.windowFrames, count - first)
    for (let bin = 0; bin < bins; bin++) {
      const row = values.subarray(bin * count + first, bin * count + first + size)
      features.set(row, bin * this.windowFrames)
    }
    const input = floats(features, [1, bins, this.windowFrames])
    const cross = await this.encoder.run({ features: input })
    return { cross, past: this.nothing(), tokens: 0 }
  }

  /** The window once more, from its first token on. */
  again({ cross }: Writing): Writing {
    return { cross, past: this.nothing(), tokens: 0 }
  }

  private nothing(): Tensors {
    const { width, decoder } = this.config
    const past: Record<string, ReturnType<typeof floats>> = {}
    for (let layer = 0; layer < decoder.layers; layer++)
      for (const part of ["k", "v"]) {
        const empty = new Float32Array(width)
        const shape = [1, decoder.heads, 1, width / decoder.heads]
        past[`present.${layer}.${part}`] = floats(empty, shape)
      }
    return past
  }

  /** Appends tokens; returns the logits `[vocabulary]` after those whose indices are `wanted`. */
  async write(
    writing: Writing,
    ids: readonly number[],
    wanted: readonly number[] = [ids.length - 1],
  ): Promise<readonly Float32Array[]> {
    const feeds: Record<string, Tensors[string]> = {
      ids: longs(ids, [1, ids.length]),
      positions: longs(
        ids.map((_, i) => writing.tokens + i),
        [1, ids.length],
      ),
      wanted: longs(wanted),
      ...writing.cross,
    }
    for (const [name, tensor] of Object.entries(writing.past))
      feeds[name.replace("present", "past")] = tensor
    const { logits, ...present } = await this.decoder.run(feeds)
    writing.past = present
    writing.tokens += ids.length
    const all = logits!.data as Float32Array
    const { vocabulary } = this.config
    return wanted.map((_, i) => all.slice(i * vocabulary, (i + 1) * vocabulary))
  }

  async close(): Promise<void> {
    for (const session of [this.decoder, this.encoder, this.spectrogram]) await session.release()
  }
}
