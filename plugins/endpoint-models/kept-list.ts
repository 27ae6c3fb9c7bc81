import type { Catalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { toList } from "./reply-encoding.ts"
import type { ModelList } from "./schema.ts"

export interface KeptList {
  readonly json: ModelList
  readonly text: string
}

/** All that `toModel` says of an entry and that changes while the server runs. */
const factsOf = (catalogue: Catalogue, entry: ModelEntry) => {
  const state = catalogue.state(entry.id)
  const loaded = state.state === "ready" ? state.loaded : undefined
  return {
    entry,
    served: catalogue.served(entry),
    loaded,
    // it moves to another place while it is open
    servedBy: loaded?.servedBy,
  }
}

type Facts = ReturnType<typeof factsOf>

const isSame = (a: Facts, b: Facts | undefined): boolean =>
  a.entry === b?.entry &&
  a.served === b.served &&
  a.loaded === b.loaded &&
  a.servedBy === b.servedBy

/**
 * Returns a function that returns the list of all models. Everybody asks for it, and it changes when
 * a model opens or its place does: its text is kept until then.
 */
export const keepList = (catalogue: Catalogue, created: number): (() => KeptList) => {
  let facts: readonly Facts[] = []
  let list: KeptList | undefined
  return () => {
    const now = catalogue.entries.map((entry) => factsOf(catalogue, entry))
    if (list && now.length === facts.length && now.every((each, i) => isSame(each, facts[i])))
      return list
    facts = now
    const json = toList(catalogue, created)
    list = { json, text: JSON.stringify(json) }
    return list
  }
}
