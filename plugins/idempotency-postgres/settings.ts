import { Schema } from "effect"

/** Nothing to set: how long keys live is part of the API. */
export const Settings = Schema.Struct({})
