import type { DecoderShape } from "../architectures/decoder-config.ts"
import type { KvNumbers, KvStore, StoredRows } from "./kv-store.ts"
import type { TokenPlaces } from "./token-places.ts"

/** The LoRA of a sequence. */
export interface AdapterChoice {
  readonly id: string
  /** 1: as it was trained. */
  readonly strength: number
}

/**
 * A forward pass over `count` new tokens in each of `rows` sequences, which may have pasts of
 * different lengths.
 */
export interface ForwardPass {
  readonly rows: number
  readonly count: number
  /** `[rows, count]`, row by row. */
  readonly ids: ArrayLike<number>
  /** Rows `[width]` that are read in place of embedded tokens, by their index in `ids`. */
  readonly embedded?: ReadonlyMap<number, Float32Array>
  /** `[rows]`: the number of cached tokens of each row, which the new ones follow. */
  readonly pastLens: readonly number[]
  /**
   * Keys of layer 0, values of layer 0, keys of layer 1 ...: each `[rows, kvHeads, capacity,
   * headSize]`. Values beyond a row's past are ignored, but must be finite.
   */
  readonly past: readonly Float32Array[]
  /** The rows of the session's own store, where it has one; `past` is empty then. */
  readonly stored?: StoredRows
  readonly capacity: number
  /** `[rows]`: the sequences that may get longer than the shape's `longAfter`; absent: none. */
  readonly long?: readonly boolean[]
  /** `[rows]`: places of tokens in the sequences that have images; absent: all is text. */
  readonly places?: readonly (TokenPlaces | undefined)[]
  /** Indices into `ids` of the tokens whose logits are wanted. */
  readonly logitsAt: readonly number[]
  /** `[rows]`; absent: no row has one. */
  readonly adapters?: readonly (AdapterChoice | undefined)[]
}

/** Both arrays are valid until the next pass: its outputs may take their memory. */
export interface DecoderOutput {
  /** `[logitsAt.length, vocabulary]` */
  readonly logits: Float32Array
  /**
   * Keys and values of the new tokens, `[2*layers, rows, count, kvHeads*headSize]`, in the order of
   * `past`; empty where the pass has written them to the rows on the device.
   */
  readonly fresh: KvNumbers
}

/**
 * A decoder in ONNX Runtime. It keeps no state between passes: the caller holds keys and values.
 * Passes must not overlap.
 */
export interface DecoderSession {
  readonly shape: DecoderShape
  /** The same tokens have the same numbers, bit by bit, in chunks of any size and any company. */
  readonly isInvariant: boolean
  forward(pass: ForwardPass): Promise<DecoderOutput>
  /** A pass over a part of a prompt, by weights of their own; absent: prompts have none. */
  readPrompt?(pass: ForwardPass): Promise<DecoderOutput>
  /** The most tokens of all rows of a store; absent: any number. */
  readonly mostTokens?: number
  /** Tokens of a prompt that a pass should read; absent: 64. */
  readonly chunkTokens?: number
  /** Bytes of the keys and values of one token, where they are not floats. */
  readonly tokenBytes?: number
  /** Returns an empty store of one row, for passes of this session; absent: one of floats. */
  newStore?(capacity: number): KvStore
  /** Memory that adapters take now; absent: it takes none. */
  adapterBytes?(): number
  close(): Promise<void>
}

/** An open decoder with its vocabulary. */
export interface Decoder {
  readonly session: DecoderSession
  /** Folder in which `loadChatTokenizer` finds tokenizer and chat template. */
  readonly folder: string
  /** Names the model's files, their precisions and the graphs. */
  readonly digest: string
  /** Tokens that end an answer. */
  readonly endTokens: ReadonlySet<number>
  /** The bytes of text that a token stands for; none for a control token. */
  bytesOf(token: number): Uint8Array
  /** Returns the ids of those spellings that are a single token. */
  idsOf(spellings: readonly string[]): readonly number[]
  /**
   * The tokenizer begins a text's first word with a space too, so the first space of an answer is
   * not text.
   */
  readonly startsWithSpace: boolean
  /** Its chat template can make it think. */
  readonly thinks: boolean
  /** Its chat template writes today's date into prompts. */
  readonly isDated: boolean
  /** What its files say to sample answers with. */
  readonly advisedTemperature?: number
  /** A graph was built whose rows should not depend on each other, but do on this CPU or device. */
  readonly roundingDiffers: boolean
}
