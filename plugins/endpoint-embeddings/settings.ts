import { Schema } from "effect"

/** There is nothing to set. */
export const Settings = Schema.Struct({})
export type Settings = typeof Settings.Type
