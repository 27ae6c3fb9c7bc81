import { GrammarFailed } from "../sampling/token-mask.ts"
import type { Grammar } from "./constraint.ts"
import { analyseSchema } from "./schema-report.ts"

/** As llguidance reads it. Of a schema, what can be kept: whether that is all of it is for the plan to ask. */
export const grammarText = (grammar: Grammar): string => {
  if (grammar.kind === "lark") return grammar.lark
  const { guided } = analyseSchema(grammar.schema)
  if (!guided) throw new GrammarFailed("no document satisfies the schema")
  return JSON.stringify(guided)
}
