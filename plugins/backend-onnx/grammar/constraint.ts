import type { Json } from "../../../core/json.ts"

/**
 * The grammar of an answer. `schema`: one JSON document (`{}` is any, `{"type":"object"}` is
 * `json_object`). `lark`: a grammar in llguidance's
 * variant of Lark, in which `%json {...}` stands for a document.
 */
export type Grammar = (
  | { readonly kind: "schema"; readonly schema: Json }
  | {
      readonly kind: "lark"
      readonly lark: string
      /** A request's own grammar, of whose masks nobody knows what they cost. */
      readonly isCustom?: boolean
      /** The documents within the answer that are checked on finished values, too. */
      readonly documents?: readonly EmbeddedDocument[]
    }
) & {
  /** Compiling it, or one of its masks, takes long enough for others to notice. */
  readonly isHeavy?: boolean
}

/** A document within an answer whose other text is fixed from `trigger` on. */
export interface EmbeddedDocument {
  readonly schema: Json
  /** The text that ends where the document begins. Empty: the document is the whole answer. */
  readonly before: string
  /**
   * The text or control token before which the answer is free and holds no document. Absent: it is
   * fixed from its beginning on.
   */
  readonly trigger?: string | number
  /**
   * Beginnings of answers that hold documents: any other answer is free. Absent: there is a trigger,
   * or every answer is fixed.
   */
  readonly beginnings?: readonly string[]
}

/**
 * Constrains one answer, token by token. The mask of the next token is computed in parallel to the
 * forward pass.
 */
export interface Constraint {
  /**
   * Bit `id & 31` of word `id >> 5` allows a token next; end tokens are allowed where the text may
   * end. Valid until `accept`. Waits until it is computed.
   */
  mask(): Uint32Array
  /** Advances by the chosen token, which the mask must allow. */
  accept(token: number): void
  /** Takes back the last `count` accepted tokens. */
  rollback(count: number): void
  /**
   * The number of accepted tokens from the beginning of the outermost guarded value that is open,
   * which may have to be taken back: a mask may be empty then. Absent: nothing is guarded, so no
   * mask is ever empty.
   */
  guardedTokens(): number | undefined
  /** Whether the text may end here. */
  isComplete(): boolean
  /** Begins to search the shortest completion of at most `most` tokens from here on. */
  seekClosing(most: number): void
  /** Returns what the last search found, as tokens; undefined: nothing. Waits until it has ended. */
  closing(): readonly number[] | undefined
  release(): void
}

/** Opens the constraints of one engine, in its thread. */
export interface Constraints {
  /**
   * Throws `GrammarFailed` for a grammar that does not compile within its limits; rare, as plans
   * compile first.
   */
  open(grammar: Grammar): Constraint
}
