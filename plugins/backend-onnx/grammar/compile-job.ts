import { createHash } from "node:crypto"
import type { Json } from "../../../core/json.ts"
import type { KeywordVerdict } from "../../../core/ports/schema-checker.ts"
import { GrammarFailed } from "../sampling/token-mask.ts"
import type { Grammar } from "./constraint.ts"
import type { SharedVocabulary } from "./grammar-vocabulary.ts"
import { child } from "./schema/pointer.ts"
import { SchemaInvalid } from "./schema/reading.ts"
import { tooManyWays } from "./schema/ways.ts"
import { analyseSchema, relax, type SchemaAnalysis } from "./schema-report.ts"
import { byteTokens, failingTexts, heaviestText, heavyAnalysisMs, tryGrammar } from "./trial.ts"

/** `vocabulary`: the model's tokens, over which the grammar is tried; absent: single bytes. */
export type CompileInput = { readonly vocabulary?: SharedVocabulary } /**
 * `isStrict`: refuse keywords that can't be enforced, otherwise leave them out. `withReport`:
 * report the verdict on every keyword.
 */ & (
  | {
      readonly kind: "schema"
      readonly schema: Json
      readonly isStrict: boolean
      readonly withReport?: boolean
    }
  /** A Lark grammar made of schemas that were compiled before. */
  | { readonly kind: "lark"; readonly lark: string }
)

export type Compiled =
  /** `grammar`: the one to open. `keywords`: the report, if requested. */
  | {
      readonly result: "ok"
      readonly grammar: Grammar
      readonly compileMs: number
      readonly keywords?: readonly KeywordVerdict[]
    }
  | {
      readonly result: "refused"
      readonly keyword: string
      readonly path: string
      readonly reason: string
      readonly keywords?: readonly KeywordVerdict[]
      readonly compileMs: number
    }
  /** It is not a JSON Schema. */
  | { readonly result: "invalid"; readonly path: string; readonly reason: string }
  | {
      readonly result: "tooComplex"
      readonly reason: string
      readonly keywords?: readonly KeywordVerdict[]
      readonly compileMs: number
    }

const keptResults = 256

// each thread of the pool has its own
const results = new Map<string, Compiled>()

/** The keyword that an error message of llguidance is about. */
const blamed: readonly (readonly [RegExp, string])[] = [
  [/patternProperty regexes/, "patternProperties"],
  [/circular references/, "$ref"],
  [/regex|pattern/i, "pattern"],
]

/** The texts are too much, not the structure. */
const isOfTexts = /expressions|states|lexer|regex/i
const tooMuch = /too large|too many|too complex|limit|fuel/i

type Verdict =
  | Refusal
  | Omit<Extract<Compiled, { readonly result: "ok" }>, "compileMs">
  | Omit<Extract<Compiled, { readonly result: "tooComplex" }>, "compileMs">
type Refusal = Omit<Extract<Compiled, { readonly result: "refused" }>, "compileMs">

/** The first line of a message, with what is wrong in a pattern that it shows over several lines. */
const shortOf = (message: string): string => {
  if (message.includes("Unable to determine if regex is empty"))
    return "its patterns are too complex together"
  const why = /^error: (.*)$/m.exec(message)?.[1]
  return [message.split("\n")[0]!, ...(why === undefined ? [] : [why])].join(" ").slice(0, 500)
}

const refusal = (keyword: string, path: string, reason: string): Refusal => ({
  result: "refused",
  keyword,
  path,
  reason,
})

const impossible = refusal("", "", "no document satisfies the schema")

const attempt = (
  vocabulary: SharedVocabulary,
  grammar: Grammar,
  text: string,
  analysisMs = 0,
): Verdict => {
  try {
    const isHeavy =
      tryGrammar(vocabulary, grammar.kind, text).isHeavy || analysisMs > heavyAnalysisMs
    return { result: "ok", grammar: isHeavy ? { ...grammar, isHeavy } : grammar }
  } catch (cause) {
    if (!(cause instanceof GrammarFailed)) throw cause
    const message = shortOf(cause.message)
    if (/Unsatisfiable schema|NoExtension/.test(message)) return impossible
    const keyword = blamed.find(([sign]) => sign.test(message))?.[1]
    return keyword === undefined || tooMuch.test(message)
      ? { result: "tooComplex", reason: message }
      : refusal(keyword, "", message)
  }
}

/** Tries the whole schema, and where that is too much, with more left to guards. */
const attemptSchema = (
  vocabulary: SharedVocabulary,
  schema: Json,
  analysis: SchemaAnalysis,
): Verdict => {
  const found = attemptOnce(vocabulary, schema, analysis)
  if (found.result === "ok" || found === impossible || analysis.plainer === undefined) return found
  const { plainer } = analysis
  const again = attemptSchema(vocabulary, plainer, analyseSchema(plainer))
  return again.result === "ok" ? again : found
}

/** What is too much is blamed on the heaviest text, if there is one. */
const attemptOnce = (
  vocabulary: SharedVocabulary,
  schema: Json,
  { enforced, texts, analysisMs }: SchemaAnalysis,
): Verdict => {
  if (!enforced) return impossible
  const tooMany = tooManyWays(enforced)
  if (tooMany) return { result: "tooComplex", reason: tooMany }
  const grammar: Grammar = { kind: "schema", schema }
  const found = attempt(vocabulary, grammar, JSON.stringify(enforced), analysisMs)
  if (found.result === "ok" || found === impossible) return found
  const isPattern = found.result === "refused" && found.keyword === "pattern" && !found.path
  const heaviest = isPattern || isOfTexts.test(found.reason) ? heaviestText(texts) : undefined
  return heaviest
    ? refusal(heaviest.keyword, child(heaviest.path, heaviest.keyword), found.reason)
    : found
}

const strictly = (
  vocabulary: SharedVocabulary,
  schema: Json,
  analysis: SchemaAnalysis,
): Verdict => {
  const { refused, texts } = analysis
  if (refused) return refusal(refused.keyword, refused.path, refused.reason ?? "")
  const [failing] = failingTexts(vocabulary, texts)
  if (!failing) return attemptSchema(vocabulary, schema, analysis)
  return refusal(failing.keyword, child(failing.path, failing.keyword), failing.reason)
}

/** Constrains as far as possible, at least to JSON. */
const loosely = (vocabulary: SharedVocabulary, schema: Json, whole: SchemaAnalysis): Verdict => {
  if (!whole.enforced) return impossible
  const dropped = failingTexts(vocabulary, whole.texts).map(({ path, keyword }) =>
    child(path, keyword),
  )
  for (;;) {
    const relaxed = whole.refused || dropped.length ? relax(schema, dropped) : schema
    const found = attemptSchema(vocabulary, relaxed, analyseSchema(relaxed))
    if (found.result === "ok") return found
    if (found.result !== "refused" || !found.path || dropped.includes(found.path)) break
    dropped.push(found.path)
  }
  return attempt(vocabulary, { kind: "schema", schema: {} }, "{}")
}

/** The report, in which a keyword that turned out to be too much is refused. */
const reportOf = (
  keywords: readonly KeywordVerdict[],
  verdict: Verdict,
): readonly KeywordVerdict[] =>
  verdict.result === "refused" && verdict.path
    ? keywords.map((one) =>
        one.path === verdict.path ? { ...one, verdict: "refused", reason: verdict.reason } : one,
      )
    : keywords

const compiled = (input: CompileInput): Compiled => {
  const startedMs = performance.now()
  const { vocabulary = byteTokens } = input
  const timed = (verdict: Verdict) => ({ ...verdict, compileMs: performance.now() - startedMs })
  if (input.kind === "lark")
    return timed(attempt(vocabulary, { kind: "lark", lark: input.lark }, input.lark))
  const { schema, isStrict, withReport } = input
  const analysis = analyseSchema(schema)
  const verdict = (isStrict ? strictly : loosely)(vocabulary, schema, analysis)
  return timed(
    withReport ? { ...verdict, keywords: reportOf(analysis.keywords, verdict) } : verdict,
  )
}

/** Runs in the thread pool. Compiles a grammar once before anything is paid for or generated. */
export default ({ vocabulary, ...input }: CompileInput): Compiled => {
  const key = createHash("sha256")
    .update(`${vocabulary?.digest} ${JSON.stringify(input)}`)
    .digest("base64")
  const known = results.get(key)
  if (known) {
    results.delete(key)
    results.set(key, known)
    return known
  }
  let fresh: Compiled
  try {
    fresh = compiled({ ...input, ...(vocabulary && { vocabulary }) })
  } catch (cause) {
    if (!(cause instanceof SchemaInvalid)) throw cause
    fresh = { result: "invalid", path: cause.path, reason: cause.message }
  }
  results.set(key, fresh)
  if (results.size > keptResults) results.delete(results.keys().next().value!)
  return fresh
}
