import { createHash } from "node:crypto"
import type { Json } from "../../../core/json.ts"
import type { KeywordVerdict } from "../../../core/ports/schema-checker.ts"
import { GrammarFailed } from "../sampling/token-mask.ts"
import type { Grammar } from "./constraint.ts"
import { GrammarInstance, strictLimits } from "./grammar-instance.ts"
import { byteVocabulary } from "./grammar-vocabulary.ts"
import { SchemaInvalid } from "./schema/reading.ts"
import { tooManyWays } from "./schema/ways.ts"
import { analyseSchema, relax } from "./schema-report.ts"
import { webAssembly } from "./web-assembly.ts"

export type CompileInput =
  /**
   * `isStrict`: refuse keywords that can't be enforced, otherwise leave them out. `withReport`:
   * report the verdict on every keyword.
   */
  | {
      readonly kind: "schema"
      readonly schema: Json
      readonly isStrict: boolean
      readonly withReport?: boolean
    }
  /** A Lark grammar made of schemas that were compiled before. */
  | { readonly kind: "lark"; readonly lark: string }

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
const mostMemoryBytes = 256 * 2 ** 20

// each thread of the pool has its own
const results = new Map<string, Compiled>()
let instance: GrammarInstance | undefined

/**
 * Compiles over a vocabulary of single bytes, as whether a grammar compiles does not depend on the
 * model's tokens: no thread of the pool needs a model's vocabulary.
 */
const compile = (kind: Grammar["kind"], text: string): void => {
  if (!instance || instance.memoryBytes > mostMemoryBytes)
    instance = new GrammarInstance(byteVocabulary(), undefined, strictLimits)
  try {
    const matcher = instance.compile(kind, text)
    // the first mask finds what compilation does not: that the grammar allows no token at all
    instance.mask(matcher)
    instance.free(matcher)
  } catch (cause) {
    if (!(cause instanceof webAssembly.RuntimeError || cause instanceof RangeError)) throw cause
    instance = undefined
    throw new GrammarFailed("the grammar is too complex", { cause })
  }
}

/** The keyword that an error message of llguidance is about. */
const blamed: readonly (readonly [RegExp, string])[] = [
  [/patternProperty regexes/, "patternProperties"],
  [/circular references/, "$ref"],
  [/regex|pattern/i, "pattern"],
]

const failureOf = (text: string, compileMs: number): Compiled => {
  if (/Unsatisfiable schema|NoExtension/.test(text))
    return {
      result: "refused",
      keyword: "",
      path: "",
      reason: "no document satisfies the schema",
      compileMs,
    }
  const keyword = blamed.find(([sign]) => sign.test(text))?.[1]
  return keyword === undefined || /too large|too complex|limit|fuel/i.test(text)
    ? { result: "tooComplex", reason: text, compileMs }
    : { result: "refused", keyword, path: "", reason: text, compileMs }
}

/** The first line of a message, with what is wrong in a pattern that it shows over several lines. */
const shortOf = (message: string): string => {
  const why = /^error: (.*)$/m.exec(message)?.[1]
  return [message.split("\n")[0]!, ...(why === undefined ? [] : [why])].join(" ").slice(0, 500)
}

const attempt = (grammar: Grammar, text: string, startedMs: number): Compiled => {
  try {
    compile(grammar.kind, text)
    return { result: "ok", grammar, compileMs: performance.now() - startedMs }
  } catch (cause) {
    if (!(cause instanceof GrammarFailed)) throw cause
    return failureOf(shortOf(cause.message), performance.now() - startedMs)
  }
}

const answer = (input: CompileInput): Compiled => {
  const startedMs = performance.now()
  if (input.kind === "lark") return attempt(input, input.lark, startedMs)
  const { keywords, refused, enforced } = analyseSchema(input.schema)
  const report = input.withReport ? { keywords } : {}
  const elapsedMs = () => performance.now() - startedMs
  if (refused && input.isStrict)
    return {
      result: "refused",
      keyword: refused.keyword,
      path: refused.path,
      reason: refused.reason ?? "",
      compileMs: elapsedMs(),
      ...report,
    }
  if (!enforced)
    return {
      result: "refused",
      keyword: "",
      path: "",
      reason: "no document satisfies the schema",
      compileMs: elapsedMs(),
      ...report,
    }
  const schema = refused ? relax(input.schema) : input.schema
  const tooMany = tooManyWays(enforced)
  const compiled: Compiled = tooMany
    ? { result: "tooComplex", reason: tooMany, compileMs: elapsedMs() }
    : attempt({ kind: "schema", schema }, JSON.stringify(enforced), startedMs)
  // a request that is not strict is constrained as far as possible, at least to JSON
  if (compiled.result !== "ok" && !input.isStrict)
    return { ...attempt({ kind: "schema", schema: {} }, "{}", startedMs), ...report }
  return { ...compiled, ...report }
}

/** Runs in the thread pool. Compiles a grammar once before anything is paid for or generated. */
export default (input: CompileInput): Compiled => {
  const key = createHash("sha256").update(JSON.stringify(input)).digest("base64")
  const known = results.get(key)
  if (known) {
    results.delete(key)
    results.set(key, known)
    return known
  }
  let fresh: Compiled
  try {
    fresh = answer(input)
  } catch (cause) {
    if (!(cause instanceof SchemaInvalid)) throw cause
    fresh = { result: "invalid", path: cause.path, reason: cause.message }
  }
  results.set(key, fresh)
  if (results.size > keptResults) results.delete(results.keys().next().value!)
  return fresh
}
