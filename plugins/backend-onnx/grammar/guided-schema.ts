import type { Json } from "../../../core/json.ts"

export const guidedSchema = (schema: Json): Json => ({ "x-guidance": { whitespace_pattern: "[ ]|\\n[ ]{0,20}", json_allowed_escapes: 'nrbtf\\"' }, ...(schema as object) })
