import { Schema } from "effect"

/** There is nothing to set: the list is that of the config file. */
export const Settings = Schema.Struct({})
export type Settings = typeof Settings.Type
