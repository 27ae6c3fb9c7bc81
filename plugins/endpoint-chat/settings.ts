import { Schema } from "effect"

/** There is nothing to set: limits and defaults come from the catalogue. */
export const Settings = Schema.Struct({})
export type Settings = typeof Settings.Type
