import type { Json } from "../../../core/json.ts"

/** What an answer is held to of a schema, or why it can't be. Strict: every keyword or none; otherwise as far as it can be. */
export const heldSchema = (schema: Json, _isStrict: boolean): { readonly schema: Json } | { readonly refused: string } => ({ schema })
