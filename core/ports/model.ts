import type { Effect, Scope, Stream } from "effect"
import type { Tenant } from "../caller.ts"
import type { ApiError } from "../errors.ts"
import type { Json } from "../json.ts"
import type { CallId, ModelId } from "../services/ids.ts"
import type { Usage } from "../usage.ts"
import type { TranscribeEvent, TranscribeRequest } from "./audio.ts"
import type { ImageEvent, ImageSetting, Media } from "./image.ts"

/** Per-call context that the call path passes to a model. */
export interface ModelContext {
  readonly callId: CallId
  readonly tenant: Tenant
  readonly priority: "realtime" | "batch"
  /** Unix ms; after it the model fails with `backend_timeout`. */
  readonly deadlineMs: number
  /** Cumulative usage so far. The path reads it on every exit: report as work is done. */
  meter(model: ModelId, soFar: Usage): void
  /** Facts by which the answer can be computed again: the receipt has them. */
  note?(facts: Readonly<Record<string, Json>>): void
  /** Records the ms of a stage (`queue`, `images`, `prefill`, `decode`) for `Server-Timing`. */
  time(stage: string, durationMs: number): void
}

/** A checked request with its worst case. Nothing has run yet. */
export interface ModelPlan<Event> {
  /** Each count's maximum by itself: no report may exceed it, and its worst price is held. */
  readonly bound: Usage
  /** Interrupting it stops the engine within one step. */
  readonly run: Stream.Stream<Event, ApiError>
}

/** `plan` has no side effect; it fails with the 4xx of a request that this model can't take. */
export interface Task<Request, Event> {
  plan(request: Request, context: ModelContext): Effect.Effect<ModelPlan<Event>, ApiError>
}

export interface Tasks {
  readonly chat: Task<ChatRequest, ChatEvent>
  readonly embed: Task<EmbedRequest, EmbedEvent>
  readonly rerank: Task<RerankRequest, RerankEvent>
  readonly image: Task<ImageRequest, ImageEvent>
  readonly transcribe: Task<TranscribeRequest, TranscribeEvent>
}
export type TaskName = keyof Tasks

/** URLs are fetched (through the guard) before the plan, so a model sees bytes only. */
export type Part = { readonly cacheBreakpoint?: true } & (
  | { readonly type: "text"; readonly text: string }
  | Media
)

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: readonly Part[]
  readonly toolCalls?: readonly ToolCall[]
  readonly toolCallId?: string
  /** The reasoning before the assistant's answer; the chat template may leave it out. */
  readonly reasoning?: string
}

export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number
  readonly topP: number
  readonly seed?: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  /** Only so many of the likeliest tokens. */
  readonly topK?: number
  /** Only tokens with at least this part of the likeliest one's probability. */
  readonly minP?: number
  /** Divides the positive logits of tokens that the prompt or the answer has, multiplies others. */
  readonly repetitionPenalty?: number
  /** Token id -> added to its logit, -100 to 100. */
  readonly logitBias?: ReadonlyMap<number, number>
}

/** A LoRA. */
export interface Adapter {
  readonly id: string
  readonly strength: number
}

export interface ToolDefinition {
  readonly name: string
  readonly description?: string
  /** JSON Schema. */
  readonly parameters?: Json
  /** With `strict`, an unsupported keyword is a 400; else it constrains as far as supported. */
  readonly strict?: boolean
}

/**
 * `closeOnLength`: near the end of `maxTokens` the document is closed, so that it is whole where
 * that is possible; it still finishes with `length`.
 */
export type ResponseFormat = {
  readonly closeOnLength?: boolean
  /** The field of the request that asks for it, if that is not `response_format`. */
  readonly param?: string
} & (
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly schema: Json; readonly strict: boolean }
  /** The whole answer matches the ECMAScript pattern. */
  | { readonly type: "regex"; readonly pattern: string }
  /** The whole answer is a sentence of the grammar, in Lark. */
  | { readonly type: "grammar"; readonly lark: string }
  | { readonly type: "choice"; readonly choices: readonly string[] }
)

export interface ChatRequest {
  readonly messages: readonly ChatMessage[]
  readonly sampling: Sampling
  /** For each answer. */
  readonly maxTokens: number
  /**
   * How many answers to write to the prompt, which is read and metered once; 1 if absent. The first
   * is the one that the same seed gives alone.
   */
  readonly answers?: number
  /** Up to 4; the text ends before the first that appears. */
  readonly stop: readonly string[]
  readonly tools?: readonly ToolDefinition[]
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string }
  /** The names of the tools that may be called; absent: all. */
  readonly allowedTools?: readonly string[]
  readonly parallelToolCalls?: boolean
  readonly responseFormat?: ResponseFormat
  readonly thinking?: boolean
  /** How many alternatives to report for each token, 0 to 20; absent: no log-probabilities. */
  readonly topLogprobs?: number
  readonly adapter?: Adapter
}

export interface TokenLogprob {
  readonly token: string
  readonly bytes: readonly number[]
  readonly logprob: number
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/**
 * `finish` comes once for each answer, as its last event; `isWhole` is said with `closeOnLength`.
 * Text is whole UTF-8 characters, without stop strings. `answer`: from 0 on; absent: 0.
 */
export type ChatEvent = { readonly answer?: number } & (
  | {
      readonly type: "text"
      readonly text: string
      readonly logprobs?: readonly (TokenLogprob & { readonly top: readonly TokenLogprob[] })[]
    }
  | { readonly type: "reasoning"; readonly text: string }
  | {
      readonly type: "toolCall"
      readonly index: number
      readonly id?: string
      readonly name?: string
      readonly argumentsDelta: string
    }
  | { readonly type: "finish"; readonly reason: FinishReason; readonly isWhole?: boolean }
)

/** `tokens`: a text as ids of the model's own vocabulary, with or without its special tokens. */
export type EmbedItem = Part | { readonly type: "tokens"; readonly ids: Int32Array }

export interface EmbedRequest {
  readonly items: readonly EmbedItem[]
  readonly instruction?: string
  /** A text over the model's limit: keep its start (END), its end (START), or fail (NONE). */
  readonly truncate: "END" | "START" | "NONE"
}
/** One per item, in any order. `vector` has the space's full length and Euclidean norm 1. */
export interface EmbedEvent {
  readonly index: number
  readonly vector: Float32Array
  readonly truncated: boolean
}

export interface RerankRequest {
  readonly query: string
  readonly documents: readonly string[]
  readonly instruction?: string
  /** Read at most so many tokens, or windows, of each document; absent: all of it. */
  readonly maxDocumentTokens?: number
  readonly maxDocumentWindows?: number
}
/** One per document, in any order. `score` is that of its best window, in [0, 1]. */
export interface RerankEvent {
  readonly index: number
  readonly score: number
}

export interface ImageRequest {
  readonly prompt: string
  /** Source images of an edit; empty for a generation. */
  readonly images: readonly Uint8Array[]
  readonly width: number
  readonly height: number
  readonly steps: number
  readonly seed: number
  /** Classifier-free guidance; at 1 and below there is none. */
  readonly guidanceScale: number
  /** How far an edit may leave its first source: 0 (not at all) to 1 (it starts from noise). */
  readonly strength?: number
  readonly adapter?: Adapter
  /** Fields that the client left to us: a model without such a setting may ignore these. */
  readonly unsaid?: readonly ImageSetting[]
  /** How many previews to send on the way, spread evenly over the steps; 0 if absent. */
  readonly previews?: number
}
/** The request to open a model. `path` is what its sources were pulled to. */
export interface OpenRequest<T extends TaskName = TaskName> {
  readonly id: ModelId
  readonly task: T
  readonly path: string
  readonly options: Json
  /** LoRAs or the tower of the model, each in a local file or folder; absent: none. */
  readonly adapters?: readonly { readonly id: string; readonly path: string }[]
  /** What the entry takes: what it leaves out need not be opened. Absent: all that the model can. */
  readonly modalities?: readonly string[]
  /** The window that config promises; the model's own may be smaller. */
  readonly contextTokens: number
  /** For `/readyz` and the log: `reading weights`, `building the graph` ... */
  progress(detail: string): void
}

/** The state of a model's engine, for metrics; what it does not have is absent. Totals never fall. */
export interface EngineStats {
  /** Parts of the memory for keys and values, and of the prefix cache, that are used: 0 to 1. */
  readonly kvCacheUsage?: number
  readonly prefixCacheUsage?: number
  /** Tokens of prompts that were looked up in the prefix cache, and those that it had. */
  readonly prefixCacheQueries?: number
  readonly prefixCacheHits?: number
  readonly adapterBytes?: number
  /** 1: the same request has the same answer, byte by byte. */
  readonly reproducible?: number
  /** How often the engine ended and was started again. */
  readonly restarts?: number
}

/** What a model can do, whatever more the config promises of it. */
export interface ModelAbilities {
  /** The smaller of the model's own window and the promised one. */
  readonly contextTokens: number
  readonly modalities: readonly string[]
  /**
   * What it can do beside its task, such as `vision` and `prompt_caching`. A request that needs
   * `tool_use`, `thinking` or `structured_output` of a model without it is not planned.
   */
  readonly capabilities: readonly string[]
}

export interface LoadedModel<T extends TaskName = TaskName> extends ModelAbilities {
  readonly task: Tasks[T]
  /** Ids of the open adapters that requests may choose, and of those that are parts of it. */
  readonly adapters: readonly string[]
  readonly parts?: readonly string[]
  readonly embeddingSpace?: string // the id of its vector space
  /** The first so many numbers of a vector, normalized, keep all cosines. Absent: unknown. */
  readonly embeddingWidth?: number
  /** What an image model takes for settings that a request leaves out. */
  readonly imageDefaults?: Partial<Pick<ImageRequest, "steps" | "guidanceScale">>
  /** What a chat model answers best with, and who says so; requests have it only by saying it. */
  readonly advisedSampling?: { readonly temperature: number; readonly source: "config" | "files" }
  /** What runs it, for everybody: `onnx cpu`, or `webgpu, now cpu`. */
  readonly servedBy: string
  readonly servedAt?: string // the same in `/readyz` and the log, with hosts and their troubles
  readonly stats?: () => EngineStats // read whenever the metrics are
}

/** Opens model entries; many may stand side by side. Closing the Scope frees the model. */
export interface Backend {
  readonly name: string
  readonly tasks: readonly TaskName[]
  /** Checks an entry's `options` before anything starts. Returns what is wrong, or `undefined`. */
  check(task: TaskName, options: Json): string | undefined
  /**
   * Says what a model can do from its files, without opening it; `undefined` when only opening it
   * tells. It must not say more than `open` does.
   */
  describe?(
    request: Omit<OpenRequest, "progress">,
  ): Effect.Effect<ModelAbilities | undefined, ApiError>
  open<T extends TaskName>(
    request: OpenRequest<T>,
  ): Effect.Effect<LoadedModel<T>, ApiError, Scope.Scope>
}
