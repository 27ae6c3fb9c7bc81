import type { Json } from "../../core/json.ts"
import {
  bytesOfToken,
  byteVocabulary,
  type SharedVocabulary,
} from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { SchemaDocument } from "../../plugins/backend-onnx/grammar/schema/document.ts"
import { acceptsValue } from "../../plugins/backend-onnx/grammar/schema/validator/accepts.ts"
import { mostSchemaBytes } from "../../plugins/backend-onnx/grammar/schema-limits.ts"
import { independentValidator } from "../../plugins/backend-onnx/grammar/testing/validator.ts"
import { randomFrom } from "../../plugins/backend-onnx/grammar/testing/walk.ts"
import { GrammarFailed } from "../../plugins/backend-onnx/sampling/token-mask.ts"
import { altered } from "./alter.ts"
import { Answers, compiled, isGuarded } from "./masks.ts"
import type { Named } from "./sources.ts"

export interface CorpusCount {
  schemas: number
  kept: number
  /** Kept ones whose finished values are checked beside the masks. */
  guarded: number
  /** Keyword -> number of schemas refused for it first. */
  refused: Record<string, number>
  invalid: string[]
  unsatisfiable: string[]
  tooComplex: string[]
  /** Documents written by chance under the masks. */
  documents: number
  /** Documents altered by chance: valid and invalid ones. */
  altered: { valid: number; invalid: number }
  wronglyAccepted: string[]
  wronglyRejected: string[]
  /** Documents of which the own validator holds something else than the independent one. */
  judgedOtherwise: string[]
  /** The validator can't compile the schema. */
  unchecked: number
  unclosed: string[]
  failedMasks: string[]
  /** Masks that took longer than the goal of a whole step. */
  slowMasks: string[]
  maskMs: number[]
  compileMs: number[]
  openMs: number[]
}

const emptyCount = (): CorpusCount => ({
  ...{ schemas: 0, kept: 0, guarded: 0, refused: {}, invalid: [], unsatisfiable: [] },
  ...{ tooComplex: [], documents: 0, altered: { valid: 0, invalid: 0 }, unchecked: 0 },
  ...{
    judgedOtherwise: [],
    wronglyAccepted: [],
    wronglyRejected: [],
    unclosed: [],
    failedMasks: [],
  },
  ...{ slowMasks: [], maskMs: [], compileMs: [], openMs: [] },
})

const walks = [80, 12]
const alterations = 4
const slowMaskMs = 10
const mostClosing = 4_000
/** A schema that takes longer than this with the validator is not validated. */
const largestChecked = 150_000

type Validates = (document: Json) => boolean

const validatorOf = (schema: Json): Validates | undefined => {
  if (JSON.stringify(schema).length > largestChecked) return undefined
  try {
    return independentValidator(schema)
  } catch {
    return undefined
  }
}

export class Corpus {
  readonly count = emptyCount()
  private readonly vocabulary: SharedVocabulary
  private readonly answers: Answers
  private readonly bytes = new Answers(byteVocabulary())

  constructor(vocabulary: SharedVocabulary) {
    this.vocabulary = vocabulary
    this.answers = new Answers(vocabulary)
  }

  /** All schemas are compiled; documents are written for every n-th. */
  measure(schemas: readonly Named[], every: number): void {
    for (const [i, { name, json }] of schemas.entries()) this.one(name, json, i % every === 0)
  }

  private one(name: string, schema: Json, isWritten: boolean): void {
    const { count } = this
    count.schemas++
    if (JSON.stringify(schema).length > mostSchemaBytes) {
      count.tooComplex.push(`${name}: too many bytes`)
      return
    }
    const startedMs = performance.now()
    const result = compiled(schema, this.vocabulary)
    count.compileMs.push(performance.now() - startedMs)
    if (result.result === "refused" && result.keyword === "") count.unsatisfiable.push(name)
    else if (result.result === "refused")
      count.refused[result.keyword] = (count.refused[result.keyword] ?? 0) + 1
    else if (result.result === "invalid")
      count.invalid.push(`${name}: ${result.path} ${result.reason}`)
    else if (result.result === "tooComplex") count.tooComplex.push(`${name}: ${result.reason}`)
    else {
      count.kept++
      if (isGuarded(schema)) count.guarded++
      if (isWritten) this.write(name, schema, result.grammar)
    }
  }

  private write(name: string, schema: Json, grammar: Parameters<Answers["open"]>[0]): void {
    const { count } = this
    const validates = validatorOf(schema)
    if (!validates) count.unchecked++
    const own = new SchemaDocument(schema)
    const check = {
      validates: validates ?? (() => false),
      judged: (document: Json) => acceptsValue(own, own.root, document),
    }
    for (const [n, tokens] of walks.entries()) {
      const random = randomFrom(count.schemas * 10 + n)
      const text = this.document(name, grammar, random, tokens)
      if (text === undefined) continue
      count.documents++
      if (!validates) continue
      const document = JSON.parse(text) as Json
      if (!validates(document)) count.wronglyAccepted.push(`${name}: ${text.slice(0, 300)}`)
      for (let i = 0; i < alterations; i++)
        this.compare(name, grammar, altered(document, random), check)
    }
  }

  /** Whether the masks and the validator hold the same of a document. */
  private compare(
    name: string,
    grammar: Parameters<Answers["open"]>[0],
    document: Json,
    { validates, judged }: Readonly<Record<"validates" | "judged", Validates>>,
  ): void {
    const { count } = this
    const isValid = validates(document)
    const text = JSON.stringify(document)
    if (judged(document) !== isValid) count.judgedOtherwise.push(`${name}: ${text.slice(0, 300)}`)
    // numbers are written without an exponent
    if (/\de[-+]\d/.test(text)) return
    count.altered[isValid ? "valid" : "invalid"]++
    this.bytes.open(grammar)
    const isAccepted = this.bytes.accepts(Buffer.from(text))
    this.bytes.close()
    if (isAccepted === isValid) return
    const found = isValid ? count.wronglyRejected : count.wronglyAccepted
    found.push(`${name}: ${text.slice(0, 300)}`)
  }

  private document(
    name: string,
    grammar: Parameters<Answers["open"]>[0],
    random: () => number,
    tokens: number,
  ): string | undefined {
    const { count } = this
    try {
      const startedMs = performance.now()
      this.answers.open(grammar)
      count.openMs.push(performance.now() - startedMs)
      const written = this.answers.written(random, { tokens, closing: mostClosing }, (ms) => {
        count.maskMs.push(ms)
        if (ms > slowMaskMs) count.slowMasks.push(`${name}: ${ms.toFixed(1)} ms`)
      })
      if (!written) count.unclosed.push(name)
      return written && this.textOf(written)
    } catch (cause) {
      if (!(cause instanceof GrammarFailed)) throw cause
      count.failedMasks.push(`${name}: ${cause.message.slice(0, 120)}`)
      return undefined
    } finally {
      this.answers.close()
    }
  }

  private textOf(tokens: readonly number[]): string {
    return Buffer.concat(tokens.map((token) => bytesOfToken(this.vocabulary, token))).toString()
  }
}
