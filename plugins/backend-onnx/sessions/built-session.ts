import { join } from "node:path"
import type { DecoderShape } from "../architectures/decoder-config.ts"
import { graphFile } from "../onnx/graph-cache.ts"
import { layersOfBanks } from "../onnx/native-attention.ts"
import { floats, longs, openSession, type Port, type Session } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import type { AdapterFeeds } from "./adapter-feeds.ts"
import type { DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"
import { KvBank, kvTokenBytes, mostBankTokens } from "./kv-bank.ts"
import { KvMemory } from "./kv-memory.ts"
import type { KvNumbers } from "./kv-store.ts"
import { PassOutputs } from "./pass-outputs.ts"
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

type Feeds = Record<string, Tensor>

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
  /** The layers of each bank of halves; undefined where the graph takes floats. */
  private readonly bankLayers: readonly number[] | undefined
  /** A bank's tensors, which are the same in every pass. */
  private readonly bankTensors = new WeakMap<KvBank, Feeds>()
  private readonly outputs: PassOutputs
  private readonly memory: KvMemory

  constructor(session: Session, { shape, embed, rounding }: BuiltModel, adapters?: AdapterFeeds) {
    this.shape = shape
    this.session = session
    this.embed = embed
    this.adapters = adapters
    this.isInvariant = rounding.isInvariant
    this.lonelyTwice = rounding.lonelyTwice
    this.bankLayers = session.inputs.some(({ name }) => name === "past_rows")
      ? layersOfBanks(shape)
      : undefined
    const halves = this.bankLayers !== undefined
    this.outputs = new PassOutputs(shape, halves)
    this.memory = new KvMemory(halves)
  }

  /** Native kernels read so many in less time than others read half of them. */
  get chunkTokens(): number {
    return this.bankLayers ? 128 : 64
  }

  get mostTokens(): number {
    return mostBankTokens(this.shape, this.bankLayers)
  }

  get tokenBytes(): number {
    return kvTokenBytes(this.shape, this.bankLayers ? 2 : 4)
  }

  newStore(capacity: number): KvBank {
    return new KvBank(this.shape, 1, capacity, this.bankLayers, this.memory)
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

  private firstOfTwo(fresh: KvNumbers): KvNumbers {
    const width = this.shape.kvHeads * this.shape.headSize
    const first = fresh.slice(0, fresh.length / 2)
    for (let at = 0; at < first.length; at += width)
      first.set(fresh.subarray(2 * at, 2 * at + width), at)
    return first
  }

  private async run(pass: ForwardPass): Promise<DecoderOutput> {
    const { rows, count, pastLens, logitsAt, adapters } = pass
    const positions = positionsOf(this.shape, pass)
    const x = rowsOf(this.embed, pass)
    const lora = this.adapters?.forRows(adapters ?? Array.from({ length: rows }, () => undefined))
    const feeds: Feeds = {
      x: floats(x, [rows, count, x.length / (rows * count)]),
      position_ids: longs(positions.values, positions.dimensions),
      past_lens: longs(pastLens),
      logit_idx: longs(logitsAt),
      ...lora?.weights,
      ...lora?.scales,
      ...(this.bankLayers ? this.banksOf(pass) : this.pastOf(pass)),
    }
    const { logits, new_kv: fresh } = await this.session.run(feeds, this.outputs.of(pass))
    return { logits: logits!.data as Float32Array, fresh: fresh!.data as KvNumbers }
  }

  private pastOf({ past, capacity }: ForwardPass): Feeds {
    const { kvHeads, headSize } = this.shape
    const cached = [past[0]!.length / (kvHeads * capacity * headSize), kvHeads, capacity, headSize]
    return Object.fromEntries(
      past.map((array, i) => [`past.${i >> 1}.${i % 2 ? "v" : "k"}`, floats(array, cached)]),
    )
  }

  private banksOf({ rows, stored }: ForwardPass): Feeds {
    const { store, first, count } = stored!
    const bank = store as KvBank
    const tensors = this.bankTensors.get(bank) ?? this.tensorsOf(bank)
    // a lonely row that is computed twice has one past
    const bankRows = Array.from({ length: rows }, (_, row) => first + Math.min(row, count - 1))
    return { ...tensors, past_rows: longs(bankRows) }
  }

  private tensorsOf(bank: KvBank): Feeds {
    const { kvHeads, headSize } = this.shape
    const { joined, rows, capacity } = bank
    const tensors = Object.fromEntries(
      joined.map((all, i) => [
        `past.${i}`,
        new Tensor("uint16", all, [2 * this.bankLayers![i]!, rows, kvHeads, capacity, headSize]),
      ]),
    )
    this.bankTensors.set(bank, tensors)
    return tensors
  }

  /** Adapters with which the rounding has to be looked at, too. */
  get adaptersSplitByCompany(): readonly string[] {
    return this.adapters?.splitByCompany ?? []
  }

  adapterBytes(): number {
    return this.adapters?.bytes ?? 0
  }

  close(): Promise<void> {
    return this.session.release()
  }
}
