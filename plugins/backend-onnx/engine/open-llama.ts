import { openDecoder } from "../families/open-decoder.ts"
import { GenerateJob } from "./generate-job.ts"
import type { LlamaEvent, LlamaInfo, LlamaRequest } from "./llama-jobs.ts"
import { LlamaSession } from "./llama-session.ts"
import type { EngineOpener } from "./open-engine.ts"
import { ScoreJob } from "./score-job.ts"

const spellings = (word: string): readonly string[] =>
  [word, ` ${word}`, word.toUpperCase(), ` ${word.toUpperCase()}`].flatMap((w) => [w, w.replace(/[a-z]/, (first) => first.toUpperCase())])

/** Opens a chat model. */
export const openLlama: EngineOpener<LlamaRequest, LlamaEvent, LlamaInfo> = async (spec, progress) => {
  const decoder = await openDecoder(spec, progress)
  const { session, folder, endTokens } = decoder
  const model = { session: new LlamaSession(session), endTokens, bytesOf: decoder.bytesOf }
  const words = (word: string) => decoder.idsOf(spellings(word))
  const { contextTokens, vocabulary } = session.shape
  return {
    info: { folder, contextTokens, vocabulary, yesTokens: words("yes"), noTokens: words("no") },
    start: (job, emit) => (job.kind === "generate" ? new GenerateJob(model, job, emit) : new ScoreJob(model, job, emit)),
    close: () => session.close(),
  }
}
