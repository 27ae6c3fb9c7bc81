import { existsSync, readFileSync } from "node:fs"
import { GrammarFailed } from "../sampling/token-mask.ts"
import { type GrammarVocabulary, sizeOf, wordsOf } from "./grammar-vocabulary.ts"
import { type WasmMemory, type WasmModule, webAssembly } from "./web-assembly.ts"

/** The exports of `wasm/src/lib.rs`. Numbers are addresses, counts or status codes. */
interface Exports {
  readonly memory: WasmMemory
  message_ptr(): number
  message_len(): number
  words_alloc(words: number): number
  words_free(start: number, words: number): void
  vocabulary_new(
    bytes: number,
    ends: number,
    count: number,
    endTokens: number,
    endCount: number,
  ): number
  vocabulary_limit(
    vocabulary: number,
    grammarSize: number,
    compileFuel: number,
    stepFuel: number,
    stepItems: number,
    rowItems: number,
    lexerStates: number,
  ): void
  matcher_new(vocabulary: number, kind: number, text: number, length: number): number
  matcher_clone(matcher: number): number
  matcher_mask(matcher: number, mask: number, words: number): number
  matcher_consume(matcher: number, token: number): number
  matcher_accepting(matcher: number): number
  matcher_rollback(matcher: number, count: number): number
  matcher_forced(matcher: number): number
  matcher_free(matcher: number): void
}

/**
 * Limits of a grammar; exceeding one fails with a message. About 50,000 units of fuel are a
 * millisecond of compiling, 14,000 a millisecond of a mask; a lexer state takes 1 to 2 kB.
 */
const limits = {
  grammarSize: 300_000,
  compileFuel: 4_000_000,
  stepFuel: 3_000_000,
  stepItems: 60_000,
  rowItems: 20_000,
  lexerStates: 40_000,
}

/**
 * Stricter limits for the check before a request runs: its few walks don't come to the worst place
 * of a grammar, which must not fail in the middle of an answer.
 */
export const strictLimits: typeof limits = {
  ...limits,
  compileFuel: 1_000_000,
  stepFuel: 150_000,
  rowItems: 2_000,
}

const failed = -1
const kinds = { schema: 0, lark: 1 } as const

/** The module is stored beside the sources; the build does not copy it to `dist/`. */
const moduleFile = (): URL => {
  const name = "wasm/grammar.wasm"
  const beside = new URL(name, import.meta.url)
  return existsSync(beside)
    ? beside
    : new URL(`../../../../plugins/backend-onnx/grammar/${name}`, import.meta.url)
}

let compiled: WasmModule | undefined

/** Compiled once per thread. */
const grammarModule = (): WasmModule => {
  compiled ??= new webAssembly.Module(new Uint8Array(readFileSync(moduleFile())))
  return compiled
}

/** Handle of a matcher in an instance. */
export type MatcherHandle = number

/**
 * llguidance (https://github.com/guidance-ai/llguidance) in WebAssembly, with one vocabulary. A
 * trap (`WebAssembly.RuntimeError`, or a `RangeError` of the stack) leaves it unusable: drop it.
 */
export class GrammarInstance {
  private readonly wasm: Exports
  private readonly vocabulary: number
  private readonly words: number
  private readonly maskAt: number

  constructor(vocabulary: GrammarVocabulary, module = grammarModule(), most = limits) {
    this.wasm = new webAssembly.Instance(module, { env: { now: () => performance.now() } })
      .exports as Exports
    this.words = wordsOf(vocabulary)
    this.maskAt = this.wasm.words_alloc(this.words)
    const { bytes, ends, endTokens } = vocabulary
    this.vocabulary = this.lend(bytes, (bytesAt) =>
      this.lend(ends, (endsAt) =>
        this.lend(endTokens, (endsOfText) =>
          this.must(
            this.wasm.vocabulary_new(
              bytesAt,
              endsAt,
              sizeOf(vocabulary),
              endsOfText,
              endTokens.length,
            ),
          ),
        ),
      ),
    )
    this.wasm.vocabulary_limit(
      this.vocabulary,
      most.grammarSize,
      most.compileFuel,
      most.stepFuel,
      most.stepItems,
      most.rowItems,
      most.lexerStates,
    )
  }

  get memoryBytes(): number {
    return this.wasm.memory.buffer.byteLength
  }

  private lend<A>(argument: Uint8Array | Uint32Array, use: (at: number) => A): A {
    const words = Math.ceil(argument.byteLength / 4)
    const at = this.wasm.words_alloc(words)
    new Uint8Array(this.wasm.memory.buffer).set(
      new Uint8Array(argument.buffer, argument.byteOffset, argument.byteLength),
      at,
    )
    const result = use(at)
    this.wasm.words_free(at, words)
    return result
  }

  private message(): Uint8Array {
    return new Uint8Array(this.wasm.memory.buffer, this.wasm.message_ptr(), this.wasm.message_len())
  }

  private must(handle: number): number {
    if (handle === 0) throw new GrammarFailed(Buffer.from(this.message()).toString())
    return handle
  }

  private answer(given: number): boolean {
    if (given === failed) throw new GrammarFailed(Buffer.from(this.message()).toString())
    return given === 1
  }

  /** `text`: a JSON Schema, or a grammar in Lark. */
  compile(kind: "schema" | "lark", text: string): MatcherHandle {
    const bytes = new TextEncoder().encode(text)
    return this.lend(bytes, (at) =>
      this.must(this.wasm.matcher_new(this.vocabulary, kinds[kind], at, bytes.length)),
    )
  }

  /** The clone shares the lexer's states. */
  clone(matcher: MatcherHandle): MatcherHandle {
    return this.wasm.matcher_clone(matcher)
  }

  /** Valid until the next call. */
  mask(matcher: MatcherHandle): Uint32Array {
    this.answer(this.wasm.matcher_mask(matcher, this.maskAt, this.words))
    return new Uint32Array(this.wasm.memory.buffer, this.maskAt, this.words)
  }

  consume(matcher: MatcherHandle, token: number): boolean {
    return this.answer(this.wasm.matcher_consume(matcher, token))
  }

  isAccepting(matcher: MatcherHandle): boolean {
    return this.answer(this.wasm.matcher_accepting(matcher))
  }

  rollback(matcher: MatcherHandle, count: number): void {
    this.answer(this.wasm.matcher_rollback(matcher, count))
  }

  /** Returns the bytes that must come next. Call it on a clone only, as it advances the matcher. */
  forced(matcher: MatcherHandle): Uint8Array {
    this.wasm.matcher_forced(matcher)
    return this.message().slice()
  }

  free(matcher: MatcherHandle): void {
    this.wasm.matcher_free(matcher)
  }
}
