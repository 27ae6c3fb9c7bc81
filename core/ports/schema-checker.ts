import type { Effect } from "effect"
import type { ApiError } from "../errors.ts"
import type { Json } from "../json.ts"

/** What structured output does with one keyword of a JSON Schema. */
export interface KeywordVerdict {
  /** JSON pointer of the keyword: `/properties/age/minimum`. */
  readonly path: string
  readonly keyword: string
  readonly verdict: "enforced" | "annotation" | "refused"
  /** Why it is refused, or what of it is kept. */
  readonly reason?: string
}

export interface SchemaReport {
  /** Whether a strict request with this schema is accepted. */
  readonly accepted: boolean
  readonly keywords: readonly KeywordVerdict[]
  readonly compileMs: number
  /** Why it does not compile. */
  readonly error?: string
}

/** Says before anything is paid what structured output would keep of a schema. Fails with 400 for what is no JSON Schema, or is too large. */
export interface SchemaChecker {
  check(schema: Json): Effect.Effect<SchemaReport, ApiError>
}
