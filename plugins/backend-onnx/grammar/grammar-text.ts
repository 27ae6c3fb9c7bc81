import type { Grammar } from "./constraint.ts"
import { guidedSchema } from "./guided-schema.ts"

/** As llguidance reads it. */
export const grammarText = (grammar: Grammar): string => (grammar.kind === "lark" ? grammar.lark : JSON.stringify(guidedSchema(grammar.schema)))
