import type { Effect } from "effect"
import type { ApiError } from "../errors.ts"
import type { Json } from "../json.ts"

/** How structured output treats one keyword of a JSON Schema. */
export interface KeywordVerdict {
  /** JSON pointer of the keyword: `/properties/age/minimum`. */
  readonly path: string
  readonly keyword: string
  readonly verdict: "enforced" | "annotation" | "refused"
  /** Why the keyword is refused, or which part is kept. */
  readonly reason?: string
}

export interface SchemaReport {
  /** Whether a strict request with this schema is accepted. */
  readonly accepted: boolean
  readonly keywords: readonly KeywordVerdict[]
  readonly compileMs: number
  /** Why the schema does not compile. */
  readonly error?: string
}

/**
 * Reports, free of charge, what structured output would keep of a schema. Fails with 400 for an
 * invalid or too large JSON Schema.
 */
export interface SchemaChecker {
  check(schema: Json): Effect.Effect<SchemaReport, ApiError>
}
