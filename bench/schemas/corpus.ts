import type { Json } from "../../core/json.ts"
import { closingTokens } from "../../plugins/backend-onnx/grammar/closing.ts"
import { ClosingTokens } from "../../plugins/backend-onnx/grammar/closing-tokens.ts"
import {
  GrammarInstance,
  type MatcherHandle,
} from "../../plugins/backend-onnx/grammar/grammar-instance.ts"
import {
  bytesOfToken,
  type GrammarVocabulary,
  isAllowed,
  sizeOf,
} from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { Matcher } from "../../plugins/backend-onnx/grammar/matcher.ts"
import { SchemaInvalid } from "../../plugins/backend-onnx/grammar/schema/reading.ts"
import { mostSchemaBytes } from "../../plugins/backend-onnx/grammar/schema-limits.ts"
import { analyseSchema } from "../../plugins/backend-onnx/grammar/schema-report.ts"
import { independentValidator } from "../../plugins/backend-onnx/grammar/testing/validator.ts"
import { randomFrom } from "../../plugins/backend-onnx/grammar/testing/walk.ts"
import { GrammarFailed } from "../../plugins/backend-onnx/sampling/token-mask.ts"
import type { Named } from "./sources.ts"

export interface CorpusCount {
  schemas: number
  kept: number
  /** Keyword -> number of schemas refused for it first. */
  refused: Map<string, number>
  invalid: string[]
  unsatisfiable: string[]
  tooComplex: string[]
  /** Documents completed by a random walk under the mask. */
  documents: number
  wronglyAccepted: string[]
  /** The validator can't compile the schema. */
  unchecked: number
  unclosed: string[]
  failedMasks: string[]
  maskMs: number[]
  compileMs: number[]
}

const walks = 2
const mostTokens = 80
const mostClosing = 4_000
/** A schema that takes longer than this with the validator is not validated. */
const largestChecked = 150_000

const chosen = (mask: Uint32Array, size: number, random: () => number): number => {
  const start = Math.floor(random() * size)
  for (let step = 0; step < size; step++)
    if (isAllowed(mask, (start + step) % size)) return (start + step) % size
  throw new Error("a dead end")
}

export class Corpus {
  private readonly vocabulary: GrammarVocabulary
  private readonly closing: ClosingTokens
  private instance: GrammarInstance
  private isWritten = true
  readonly count: CorpusCount = {
    schemas: 0,
    kept: 0,
    refused: new Map(),
    ...{
      invalid: [],
      unsatisfiable: [],
      tooComplex: [],
      documents: 0,
      wronglyAccepted: [],
      unchecked: 0,
      unclosed: [],
      failedMasks: [],
      maskMs: [],
      compileMs: [],
    },
  }

  constructor(vocabulary: GrammarVocabulary) {
    this.vocabulary = vocabulary
    this.closing = new ClosingTokens(vocabulary)
    this.instance = new GrammarInstance(vocabulary)
  }

  /** All schemas are compiled; documents are generated for every n-th. */
  measure(schemas: readonly Named[], every: number): void {
    for (const { name, json } of schemas) {
      this.isWritten = this.count.schemas++ % every === 0
      if (this.instance.memoryBytes > 300e6) this.instance = new GrammarInstance(this.vocabulary)
      try {
        this.one(name, json)
      } catch (cause) {
        if (!(cause instanceof SchemaInvalid)) throw cause
        this.count.invalid.push(`${name}: ${cause.path} ${cause.message}`)
      }
    }
  }

  private one(name: string, schema: Json): void {
    const startedMs = performance.now()
    if (JSON.stringify(schema).length > mostSchemaBytes) {
      this.count.tooComplex.push(`${name}: too many bytes`)
      return
    }
    const { refused, enforced } = analyseSchema(schema)
    if (!enforced) this.count.unsatisfiable.push(name)
    else if (refused)
      this.count.refused.set(refused.keyword, (this.count.refused.get(refused.keyword) ?? 0) + 1)
    if (!enforced) return
    const matcher = this.compile(name, JSON.stringify(enforced), refused !== undefined)
    if (matcher === undefined) return
    this.count.compileMs.push(performance.now() - startedMs)
    if (!refused) {
      this.count.kept++
      if (this.isWritten) this.write(name, schema, matcher)
    }
    this.instance.free(matcher)
  }

  private compile(name: string, text: string, isRefused: boolean): MatcherHandle | undefined {
    try {
      return this.instance.compile("schema", text)
    } catch (cause) {
      if (!(cause instanceof GrammarFailed)) throw cause
      if (!isRefused)
        (/Unsatisfiable/.test(cause.message)
          ? this.count.unsatisfiable
          : this.count.tooComplex
        ).push(`${name}: ${cause.message.slice(0, 200)}`)
      return undefined
    }
  }

  private write(name: string, schema: Json, matcher: MatcherHandle): void {
    const validates = this.validator(schema)
    if (!validates) this.count.unchecked++
    for (let n = 0; n < walks; n++) {
      const clone = this.instance.clone(matcher)
      const text = this.document(
        name,
        clone,
        randomFrom(this.count.schemas * 10 + n),
        n === 0 ? mostTokens : 12,
      )
      this.instance.free(clone)
      if (text === undefined) continue
      this.count.documents++
      if (validates && !validates(JSON.parse(text)))
        this.count.wronglyAccepted.push(`${name}: ${text.slice(0, 300)}`)
    }
  }

  private validator(schema: Json): ((document: Json) => boolean) | undefined {
    if (JSON.stringify(schema).length > largestChecked) return undefined
    try {
      return independentValidator(schema)
    } catch {
      return undefined
    }
  }

  private document(
    name: string,
    matcher: MatcherHandle,
    random: () => number,
    most: number,
  ): string | undefined {
    const written: number[] = []
    const size = sizeOf(this.vocabulary)
    try {
      while (written.length < most) {
        const startedMs = performance.now()
        const mask = this.instance.mask(matcher)
        this.count.maskMs.push(performance.now() - startedMs)
        const token = chosen(mask, size, random)
        if (this.vocabulary.endTokens.includes(token)) return this.textOf(written)
        this.instance.consume(matcher, token)
        written.push(token)
      }
      const unguarded = new Matcher(this.instance, matcher, undefined)
      const way = closingTokens(unguarded, this.closing, mostClosing)
      if (!way) this.count.unclosed.push(`${name}: ${this.textOf(written).slice(-120)}`)
      return way && this.textOf([...written, ...way])
    } catch (cause) {
      this.count.failedMasks.push(
        `${name}: ${(cause as Error).message.slice(0, 120)} after ${this.textOf(written).slice(-120)}`,
      )
      return undefined
    }
  }

  private textOf(tokens: readonly number[]): string {
    return Buffer.concat(tokens.map((token) => bytesOfToken(this.vocabulary, token))).toString()
  }
}
