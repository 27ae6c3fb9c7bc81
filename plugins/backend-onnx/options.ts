import { Effect, Result, Schema, SchemaIssue } from "effect"
import type { Json } from "../../core/json.ts"
import type { TaskName } from "../../core/ports/model.ts"
import { rerankTemplates } from "./chat-format/rerank-template.ts"
import type { Precision } from "./onnx/linear.ts"

const precisionOf = <Name extends Precision>(
  choices: readonly [Name, ...Name[]],
  byDefault: Name,
  description: string,
) =>
  Schema.Literals(choices)
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

const chatPrecision = precisionOf<Precision>(
  ["auto", "int8", "int8-channel", "int4", "fp32"],
  "auto",
  "How weights are kept: as each matrix is in the file (4 bits for Q4_0, Q4_1, Q4_K, IQ4_NL and IQ4_XS, 5 for Q5_0, Q5_1 and Q5_K, 2, 3 and 6 for Q2_K, Q3_K and Q6_K, 8 for all others; without native kernels only Q4_0, Q4_1 and Q4_K take less than 8), all in 8 bits, in 4, or 32 for reference. int8-channel: in 8 bits with one scale for each output, for CPUs with VNNI or AMX: prompts and several answers at once are faster.",
)

const defaultInstruction =
  "Given a web search query, retrieve relevant passages that answer the query"

const instances = Schema.optionalKey(
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })).annotate({
    description:
      "Engines of an encoder side by side, each with its share of the threads and the weights in memory, beside one with all threads for a text that comes alone: 2 by default, and 1, that one, for models of more than 40 million weights in their layers.",
  }),
)

const ChatOptions = Schema.Struct({
  precision: chatPrecision,
  promptPrecision: Schema.optionalKey(
    Schema.Literals(["int8-channel"]).annotate({
      description:
        "Keeps the weights a second time, in the precision that is named, and reads prompts by them: on CPUs with VNNI or AMX, and without native kernels, prompts are read about as fast as by precision int8-channel, and answers written as fast as by the entry's own. Takes a byte of memory for each weight. Models from GGUF and safetensors files, on the CPU.",
    }),
  ),
  recommendedTemperature: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })).annotate({
      description:
        "What GET /v1/models recommends to sample with, and the playground begins with. By default what the model's files say (generation_config.json, general.sampling.temp of a GGUF file). Requests without a temperature have 1 all the same.",
    }),
  ),
  queueWaitMs: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 }))
    .annotate({
      default: 0,
      description: "How long a request waits for a slot before it is refused with backend_busy.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  schemaInPrompt: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "Whether the prompt tells the JSON Schema of an answer: true in the system message, too; false never. By default where the chat template has a place for it, the variable json_schema. Its tokens count as the prompt's.",
    }),
  ),
})
const EmbedOptions = Schema.Struct({
  precision: precisionOf<"int8" | "int4" | "fp32">(
    ["int8", "int4", "fp32"],
    "fp32",
    "How weights are kept: in 8 bits (a smaller file), in 4, or in 32.",
  ),
  instances,
  pooling: Schema.optionalKey(
    Schema.Literals(["cls", "mean", "last"]).annotate({
      description:
        "How one vector is made of a text's tokens: the first one, their mean, or the last one. By default what the model's files say.",
    }),
  ),
  matryoshka: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "Whether the model was trained so that prefixes of its vectors are vectors themselves: then a shorter embedding is the model's own. By default what config.json says (matryoshka_dimensions).",
    }),
  ),
  instructionTemplate: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/\{instruction\}/, { message: "must have {instruction} in it" }),
    ).annotate({
      description:
        "How a request's instruction is before each text, with {instruction} where it is. By default as the model's prompts have it (config_sentence_transformers.json: Instruct: {instruction}, a new line, Query:); otherwise the instruction and a space.",
    }),
  ),
  space: Schema.optionalKey(
    Schema.NonEmptyString.check(
      Schema.isPattern(/^[\x20-\x7e]{1,100}$/, {
        message: "must be at most 100 characters of ASCII",
      }),
    ).annotate({
      description: "Name of the vector space; the model's own by default.",
    }),
  ),
})
const RerankOptions = Schema.Struct({
  precision: chatPrecision,
  instances,
  template: Schema.Literals(["auto", ...rerankTemplates])
    .annotate({
      default: "auto",
      description:
        "How a decoder is asked about a document: as a chat model, or in the format of Qwen3-Reranker. By default what its files say.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed("auto" as const))),
  instruction: Schema.NonEmptyString.annotate({
    default: defaultInstruction,
    description: "What to judge documents by, for requests that don't say.",
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(defaultInstruction))),
})

const ImageOptions = Schema.Struct({
  precision: precisionOf<Precision>(
    ["auto", "int8", "int4", "fp16", "fp32"],
    "auto",
    "How weights are kept: as the model's family is best served; matrices in 8 bits or in 4, with kernels of convolutions in 16 and the VAE in 32; all in 16; or all in 32 for reference.",
  ),
  offload: Schema.Boolean.annotate({
    default: false,
    description:
      "Keep only one part of the model in memory at a time (text encoders, denoiser, VAE): slower, as each picture loads them again, one picture at a time.",
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  tileSize: Schema.Int.check(Schema.isBetween({ minimum: 128, maximum: 4_096 }))
    .annotate({
      default: 512,
      description:
        "Pictures of more pixels on a side are encoded and decoded in overlapping tiles of so many, which bounds the memory that takes.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(512))),
  steps: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 })).annotate({
      description: "Steps of a request without num_steps; 4 by default.",
    }),
  ),
  guidanceScale: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 20 })).annotate({
      description: "Guidance of a request without guidance_scale; 1 by default, which is none.",
    }),
  ),
  slots: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 16 }))
    .annotate({
      default: 2,
      description:
        "Pictures that are made side by side, a step of each in turn; with offload always 1.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(2))),
  queueWaitMs: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 }))
    .annotate({
      default: 60_000,
      description: "How long a request waits for a slot before it is refused with backend_busy.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(60_000))),
})

const TranscribeOptions = Schema.Struct({
  precision: precisionOf<"int8" | "int4" | "fp32">(
    ["int8", "int4", "fp32"],
    "int8",
    "How weights are kept: matrices in 8 bits or in 4, or all in 32 for reference.",
  ),
  slots: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 }))
    .annotate({
      default: 4,
      description: "Files that are transcribed side by side, a token of each in turn.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(4))),
  queueWaitMs: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 }))
    .annotate({
      default: 60_000,
      description: "How long a request waits for a slot before it is refused with backend_busy.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(60_000))),
})

/** Schemas of a model entry's `options`, by task. */
export const entryOptions = {
  chat: ChatOptions,
  embed: EmbedOptions,
  rerank: RerankOptions,
  image: ImageOptions,
  transcribe: TranscribeOptions,
}
export type ChatOptions = typeof ChatOptions.Type
export type EmbedOptions = typeof EmbedOptions.Type
export type RerankOptions = typeof RerankOptions.Type

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Returns what is wrong with an entry's options, `undefined` when nothing is. */
export const wrongOptions = (task: TaskName, options: Json): string | undefined => {
  const own = entryOptions[task as keyof typeof entryOptions] as Schema.Codec<unknown, unknown>
  const decoded = Schema.decodeUnknownResult(own, {
    errors: "all",
    onExcessProperty: "error",
  })(options ?? {})
  if (Result.isSuccess(decoded)) return undefined
  return format(decoded.failure.issue)
    .issues.map((issue) => `${["options", ...(issue.path ?? [])].join(".")}: ${issue.message}`)
    .join("; ")
}
