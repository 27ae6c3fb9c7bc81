import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import type {
  LoadedModel,
  ModelContext,
  RerankEvent,
  RerankRequest,
} from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { usageOf } from "../../core/usage.ts"
import { type FakeModel, fakeEntry } from "./catalogue.ts"
import { type FakePace, type FakeRun, fakeTokens, refused, runSteps } from "./model-run.ts"

export interface FakeRerankScript extends FakePace {
  readonly entry?: Partial<ModelEntry>
}

export interface FakeRerankModel extends FakeModel<"rerank"> {
  readonly runs: readonly FakeRun<RerankRequest>[]
}

const wordsOf = (text: string) =>
  fakeTokens(text.toLowerCase()).map((word) => word.trim().replace(/[^\p{L}\p{N}]/gu, ""))

/** Returns the fraction of the query's words that are in the document. */
const scoreOf = (query: string, document: string): number => {
  const wanted = new Set(wordsOf(query))
  const found = new Set(wordsOf(document))
  return [...wanted].filter((word) => found.has(word)).length / Math.max(1, wanted.size)
}

const windowsOf = (
  document: string,
  room: number,
  { maxDocumentTokens, maxDocumentWindows }: RerankRequest,
): readonly (readonly string[])[] => {
  const tokens = fakeTokens(document).slice(0, maxDocumentTokens)
  return Array.from({ length: Math.ceil(tokens.length / room) }, (_, i) =>
    tokens.slice(i * room, (i + 1) * room),
  ).slice(0, maxDocumentWindows)
}

/** Scores by shared words, the best window of a document. One step for each document, the last one first. */
export const fakeRerankModel = (script: FakeRerankScript = {}): FakeRerankModel => {
  const entry = fakeEntry("rerank", script.entry)
  const runs: FakeRun<RerankRequest>[] = []
  const plan: LoadedModel<"rerank">["task"]["plan"] = Effect.fnUntraced(function* (
    request: RerankRequest,
    context: ModelContext,
  ) {
    yield* refused(script)
    const room = entry.contextTokens - fakeTokens(request.query).length
    if (room < 1)
      return yield* apiError(
        "context_length_exceeded",
        `The query alone fills the window of ${entry.contextTokens} tokens.`,
        { param: "query" },
      )
    let inputTokens = 0
    const steps = [...request.documents.entries()].reverse().map(([index, document]) => {
      const windows = windowsOf(document, room, request)
      inputTokens += windows.length * (entry.contextTokens - room) + windows.flat().length
      const scores = windows.map((window) => scoreOf(request.query, window.join("")))
      const event: RerankEvent = { index, score: Math.max(0, ...scores) }
      return { events: [event], usage: usageOf({ inputTokens, searchUnits: 1 }) }
    })
    return {
      bound: usageOf({ inputTokens, searchUnits: 1 }),
      run: runSteps(runs, entry.id, script, request, context, steps),
    }
  })
  return {
    entry,
    runs,
    loaded: {
      task: { plan },
      contextTokens: entry.contextTokens,
      modalities: entry.modalities,
      capabilities: [],
      adapters: [],
      servedBy: "fake",
    },
  }
}
