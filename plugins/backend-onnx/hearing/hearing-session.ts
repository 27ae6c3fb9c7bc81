import { join } from "node:path"
import { graphFile } from "../onnx/graph-cache.ts"
import { floats, longs, openSession, type Session } from "../onnx/onnx-session.ts"
import { type Frames, featuresOf, framesOf } from "./frames.ts"
import type { HearingConfig } from "./hearing-config.ts"

export const spectrogramFile = "spectrogram.onnx"
export const decoderFile = "decoder.onnx"

type Tensors = Awaited<ReturnType<Session["run"]>>

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

  /** The spectrogram of mono samples. */
  framesOf(samples: Float32Array, pause: () => Promise<void>): Promise<Frames> {
    const { spectrogram } = this.config
    return framesOf(this.spectrogram, spectrogram, samples, { least: this.windowFrames, pause })
  }

  /** Encodes the window from frame `first` on; beyond the last frame it has zeros. */
  async hear(frames: Frames, first: number): Promise<Writing> {
    const features = featuresOf(frames, this.config.spectrogram, first, this.windowFrames)
    const cross = await this.encoder.run({ features })
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
