import type { RerankRequest } from "../../../core/ports/model.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { ReadParts } from "../chat-format/document-windows.ts"
import { inPool } from "../chat-format/pool.ts"
import type { TokenPair } from "../chat-format/rerank-pairs.ts"
import type { RerankPairsInput } from "../chat-format/rerank-pairs-job.ts"
import type { RerankPromptInput } from "../chat-format/rerank-prompt-job.ts"
import type { RerankTemplate } from "../chat-format/rerank-template.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "../generation/decoder-jobs.ts"
import type { Engine } from "../worker/host.ts"
import type { EncoderPool } from "./encoder-pool.ts"
import { digestFor } from "./evidence.ts"
import type { RerankScorer, RerankServices } from "./rerank-task.ts"

interface DecoderScorerOptions {
  readonly id: ModelId
  readonly engine: Engine<DecoderRequest, DecoderEvent, DecoderInfo>
  readonly contextTokens: number
  /** The instruction of requests that bring none. */
  readonly instruction: string
  readonly template: RerankTemplate
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}

/** Scores a document by how much likelier the model answers yes than no. */
export const decoderScorer = (
  { workers, log }: RerankServices,
  { id, engine, contextTokens, template, yesTokens, noTokens, ...own }: DecoderScorerOptions,
): RerankScorer<Int32Array, DecoderEvent> => ({
  modelDigest: digestFor(engine.info),
  contextTokens,
  windowTokens: contextTokens,
  availableFor: engine.availableFor,
  read:
    ({ query, instruction = own.instruction }: RerankRequest) =>
    (parts) =>
      inPool<RerankPromptInput, ReadParts<readonly Int32Array[]>>(
        workers,
        log,
        "rerank-prompt-job",
        { folder: engine.info.folder, query, instruction, template, contextTokens, parts },
      ),
  tokensOf: (prompt) => prompt.length,
  run: (prompts, { tenant }, options) =>
    engine.run(
      {
        kind: "score",
        owner: JSON.stringify([tenant.account, tenant.mode, id]),
        prompts,
        yesTokens,
        noTokens,
      },
      options,
    ),
  scoreIn: (event) => (event.type === "score" ? event : undefined),
})

interface EncoderScorerOptions {
  /** Folder of the model's files. */
  readonly folder: string
  readonly encoderPool: EncoderPool
  readonly contextTokens: number
}

const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit))

/** Scores a document by the logit of a cross-encoder, which reads it together with the query. */
export const encoderScorer = (
  { workers, log }: RerankServices,
  { folder, encoderPool, contextTokens }: EncoderScorerOptions,
): RerankScorer<TokenPair, EmbedJobEvent> => {
  const { maxTokens: windowTokens, prompts, modelDigest } = encoderPool.info
  return {
    modelDigest: digestFor({ digest: modelDigest }),
    contextTokens,
    windowTokens,
    availableFor: encoderPool.availableFor,
    read:
      ({ query }) =>
      (parts) =>
        inPool<RerankPairsInput, ReadParts<readonly TokenPair[]>>(
          workers,
          log,
          "rerank-pairs-job",
          {
            folder,
            // where sentence-transformers puts it
            query: `${prompts.byDefault}${query}`,
            queryTokens: contextTokens,
            windowTokens,
            parts,
          },
        ),
    tokensOf: ({ ids }) => ids.length,
    run: (pairs, _, options) => encoderPool.run(pairs, options),
    scoreIn: (event) =>
      event.type === "vector"
        ? { index: event.index, score: sigmoid(event.vector[0]!) }
        : undefined,
  }
}
