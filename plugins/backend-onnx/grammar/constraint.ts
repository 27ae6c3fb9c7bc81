import type { Json } from "../../../core/json.ts"

/**
 * What an answer must look like. `schema`: one JSON document (`{}` is any, `{"type":"object"}` is what `json_object` asks for). `lark`: a grammar as llguidance
 * takes it, in which `%json {...}` stands for a document.
 */
export type Grammar =
  | { readonly kind: "schema"; readonly schema: Json }
  | { readonly kind: "lark"; readonly lark: string }

/** Follows one answer, token by token. What it computes for the next token it computes beside the model's step. */
export interface Constraint {
  /** Bit `id & 31` of word `id >> 5`: the token may come next; the end tokens, where the text may end. Valid until `accept`. Waits where it is not computed yet. */
  mask(): Uint32Array
  /** The chosen token, which the mask allows. */
  accept(token: number): void
  /** Whether the text may end here. */
  isComplete(): boolean
  /** The shortest way to an end that was found, as tokens; undefined: none within `most` tokens. */
  closing(most: number): readonly number[] | undefined
  release(): void
}

/** Of one engine: lives in its thread. */
export interface Constraints {
  /** Throws `GrammarFailed` for a grammar that does not compile within its bounds; plans compile first, so that this is rare. */
  open(grammar: Grammar): Constraint
}
