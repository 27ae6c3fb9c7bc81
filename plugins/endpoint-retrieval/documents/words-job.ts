import type { Tenant } from "../../../core/index.ts"
import { wordsOfChunk } from "./words.ts"

export interface WordsInput {
  readonly tenant: Tenant
  readonly texts: readonly string[]
}

/** Runs in the thread pool: dividing the texts of a batch into words takes tens of milliseconds. */
export default ({ tenant, texts }: WordsInput): readonly string[] =>
  texts.map((text) => wordsOfChunk(tenant, text))
