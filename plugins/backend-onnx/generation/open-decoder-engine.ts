import { adapterDigest } from "../architectures/adapter-file.ts"
import type { Constraints, Grammar } from "../grammar/constraint.ts"
import { makeConstraints } from "../grammar/constraints.ts"
import {
  type GrammarVocabulary,
  grammarVocabulary,
  sharedVocabulary,
} from "../grammar/grammar-vocabulary.ts"
import { kvTokenBytes, windowWithin } from "../sessions/kv-bank.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { TextToTokenEncoder } from "../tokenizer/text-to-token-encoder.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import type { OpenEngine } from "../worker/open-engine.ts"
import type { EngineSpec } from "../worker/protocol.ts"
import { AnswerSet, capacityOf } from "./answer-set.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { PacedConstraint } from "./constrained-decoding.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "./decoder-jobs.ts"
import { type DecoderJob, DecoderRunner } from "./decoder-runner.ts"
import { GenerateJob } from "./generate-job.ts"
import { PrefixCache } from "./prefix-cache.ts"
import { ScoreJob } from "./score-job.ts"

/** Constraints that own a thread. */
interface OpenConstraints extends Constraints {
  open(grammar: Grammar): PacedConstraint
  close(): Promise<void> | void
}

/** Starts the thread with the first grammar: a model that never sees one pays nothing. */
class LazyConstraints implements OpenConstraints {
  private readonly make: () => OpenConstraints
  private made: OpenConstraints | undefined

  constructor(make: () => OpenConstraints) {
    this.make = make
  }

  open(grammar: Grammar): PacedConstraint {
    this.made ??= this.make()
    return this.made.open(grammar)
  }

  async close(): Promise<void> {
    await this.made?.close()
  }
}

const spellings = (word: string): readonly string[] =>
  [word, ` ${word}`, word.toUpperCase(), ` ${word.toUpperCase()}`].flatMap((w) => [
    w,
    w.replace(/[a-z]/, (first) => first.toUpperCase()),
  ])

const tokensOf = (job: DecoderRequest, capacity: number): number =>
  job.kind === "generate"
    ? capacityOf(job, capacity).tokens
    : Math.max(...job.prompts.map((ids) => ids.length))

type MakeConstraints = (vocabulary: GrammarVocabulary) => OpenConstraints

// a smaller window would refuse almost every conversation
const leastWindow = 128

/**
 * Opens a decoder for chat and rerank. Its window is limited to the tokens that fit into `kvBytes`.
 * Throws `ModelFileError`.
 */
export const openDecoderEngine = async (
  spec: EngineSpec,
  progress: (detail: string) => void,
  constraintsOf: MakeConstraints = makeConstraints,
): Promise<OpenEngine<DecoderRequest, DecoderEvent, DecoderInfo, DecoderJob>> => {
  const decoder = await openDecoder(spec, progress)
  const { session: steps, folder, endTokens } = decoder
  const tokenBytes = steps.tokenBytes ?? kvTokenBytes(steps.shape)
  const capacity = Math.floor(spec.kvBytes / tokenBytes)
  if (capacity < leastWindow) {
    await steps.close()
    throw new ModelFileError(
      spec.path,
      `a token takes ${tokenBytes} bytes of keys and values, so the ${spec.kvBytes} bytes that are set for them hold only ${capacity} tokens`,
    )
  }
  const session = new CachedDecoder(steps)
  const prefixes = new PrefixCache(spec.prefixCacheBytes, tokenBytes)
  const { vocabulary } = steps.shape
  const { bytesOf, startsWithSpace } = decoder
  const forGrammars = sharedVocabulary(grammarVocabulary(vocabulary, bytesOf, endTokens))
  const constraints = new LazyConstraints(() => constraintsOf(forGrammars))
  const model = {
    session,
    prefixes,
    endTokens,
    bytesOf,
    startsWithSpace,
    vocabulary,
    constraints,
    textEncoder: new TextToTokenEncoder(vocabulary, bytesOf),
  }
  const spelled = decoder.idsOf([...spellings("yes"), ...spellings("no")])
  const among = (texts: readonly string[]) =>
    spelled.filter((id) => texts.includes(Buffer.from(bytesOf(id)).toString()))
  const words = (word: string) => ({ one: among([word]), all: among(spellings(word)) })
  return {
    info: {
      folder,
      contextTokens: windowWithin(steps.shape, spec.kvBytes, steps.mostTokens),
      vocabulary,
      grammarVocabulary: forGrammars,
      thinks: decoder.thinks,
      isDated: decoder.isDated,
      ...(decoder.advisedTemperature !== undefined && {
        advisedTemperature: decoder.advisedTemperature,
      }),
      roundingDiffers: decoder.roundingDiffers,
      ...(steps.isInvariant && { digest: decoder.digest }),
      adapterDigests: Object.fromEntries(
        (spec.adapters ?? []).map(({ id, path }) => [id, adapterDigest(path)]),
      ),
      yesTokens: words("yes"),
      noTokens: words("no"),
    },
    start: (job, emit) => {
      if (job.kind === "score") return new ScoreJob(model, job, emit)
      return job.furtherSeeds?.length
        ? new AnswerSet(model, job, emit, capacityOf(job, capacity).atOnce)
        : new GenerateJob(model, job, emit)
    },
    runner: new DecoderRunner(session, { speculation: spec.speculation && steps.isInvariant }),
    capacity,
    sizeOf: (job) => tokensOf(job, capacity),
    prefixStats: () => ({
      ...prefixes.stats(),
      ...(steps.adapterBytes && { adapterBytes: steps.adapterBytes() }),
    }),
    close: async () => {
      await constraints.close()
      await steps.close()
    },
  }
}
