import type { DecoderShape } from "../architectures/decoder-config.ts"

/** `count` new tokens in each of `rows` sequences, which may have read different numbers of tokens before. */
export interface ForwardPass {
  readonly rows: number
  readonly count: number
  /** `rows * count` of them, row by row. */
  readonly ids: ArrayLike<number>
  /** Tokens in the cache, by row: the new ones follow them. */
  readonly pastLens: readonly number[]
  /** Keys of layer 0, values of layer 0, keys of layer 1 ...: each `[rows, kvHeads, capacity, headSize]`. What lies after a row's past does not matter, as long as it is finite. */
  readonly past: readonly Float32Array[]
  readonly capacity: number
  /** Places in `ids` whose logits are wanted. */
  readonly logitsAt: readonly number[]
}

export interface DecoderOutput {
  /** `[logitsAt.length, vocabulary]` */
  readonly logits: Float32Array
  /** Of the new tokens: `[2*layers, rows, count, kvHeads*headSize]`, in the order of `past`. */
  readonly fresh: Float32Array
}

/** An open model. It holds no state between steps: who calls keeps the keys and values. One step at a time. */
export interface DecoderSession {
  readonly shape: DecoderShape
  forward(pass: ForwardPass): Promise<DecoderOutput>
  close(): Promise<void>
}

/** An open model with all that it takes to talk to it. */
export interface Decoder {
  readonly session: DecoderSession
  /** Where `loadChatTokenizer` finds tokenizer and chat template. */
  readonly folder: string
  /** After these the model has nothing more to say. */
  readonly endTokens: ReadonlySet<number>
  /** The bytes of text that a token stands for; none for a control token. */
  bytesOf(token: number): Uint8Array
  /** Ids of the spellings that are one token each. */
  idsOf(spellings: readonly string[]): readonly number[]
  /** Its tokenizer marks the start of a word with a space, also that of a text's first word: an answer's first space is no text. */
  readonly startsWithSpace: boolean
}
