import { makeConstraints } from "../grammar/constraints.ts"
import { grammarVocabulary } from "../grammar/grammar-vocabulary.ts"
import type { Decoder } from "../sessions/decoder.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { TokenSpeller } from "../tokenizer/text-to-token-encoder.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import type { OpenEngine } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { LlamaSession } from "./cached-decoder.ts"
import type { LlamaEvent, LlamaInfo, LlamaRequest } from "./decoder-jobs.ts"
import { type LlamaJob, LlamaStepper } from "./decoder-runner.ts"
import { GenerateJob } from "./generate-job.ts"
import { kvTokenBytes } from "./kv-bank.ts"
import { LazyConstraints, type OpenConstraints } from "./lazy-constraints.ts"
import { PrefixCache } from "./prefix-cache.ts"
import { ScoreJob } from "./score-job.ts"

const spellings = (word: string): readonly string[] =>
  [word, ` ${word}`, word.toUpperCase(), ` ${word.toUpperCase()}`].flatMap((w) => [
    w,
    w.replace(/[a-z]/, (first) => first.toUpperCase()),
  ])

const tokensOf = (job: LlamaRequest): number =>
  job.kind === "generate"
    ? job.promptIds.length + job.maxTokens
    : Math.max(...job.prompts.map((ids) => ids.length))

type MakeConstraints = (decoder: Decoder) => OpenConstraints

const inThread: MakeConstraints = ({ session, bytesOf, endTokens }) =>
  makeConstraints(grammarVocabulary(session.shape.vocabulary, bytesOf, endTokens))

// less would refuse almost every conversation
const leastWindow = 128

/** Opens a chat model. Its window is what fits into the memory for keys and values. */
export const openLlama = async (
  spec: EngineSpec,
  progress: (detail: string) => void,
  constraintsOf = inThread,
): Promise<OpenEngine<LlamaRequest, LlamaEvent, LlamaInfo, LlamaJob>> => {
  const decoder = await openDecoder(spec, progress)
  const { session: steps, folder, endTokens } = decoder
  const tokenBytes = kvTokenBytes(steps.shape)
  const room = Math.floor(spec.kvBytes / tokenBytes)
  if (room < leastWindow) {
    await steps.close()
    throw new ModelFileError(
      spec.path,
      `a token takes ${tokenBytes} bytes of keys and values, so the ${spec.kvBytes} bytes that are set for them hold only ${room} tokens`,
    )
  }
  const session = new LlamaSession(steps)
  const prefixes = new PrefixCache(spec.prefixCacheBytes, tokenBytes)
  const { contextTokens, vocabulary } = steps.shape
  const { bytesOf, startsWithSpace } = decoder
  const constraints = new LazyConstraints(() => constraintsOf(decoder))
  const model = {
    session,
    prefixes,
    endTokens,
    bytesOf,
    startsWithSpace,
    vocabulary,
    constraints,
    speller: new TokenSpeller(vocabulary, bytesOf),
  }
  const words = (word: string) => decoder.idsOf(spellings(word))
  return {
    info: {
      folder,
      contextTokens: Math.min(contextTokens, room),
      vocabulary,
      yesTokens: words("yes"),
      noTokens: words("no"),
    },
    start: (job, emit) =>
      job.kind === "generate" ? new GenerateJob(model, job, emit) : new ScoreJob(model, job, emit),
    stepper: new LlamaStepper(session, { guesses: spec.guesses }),
    room,
    sizeOf: tokensOf,
    close: async () => {
      await constraints.close()
      await steps.close()
    },
  }
}
