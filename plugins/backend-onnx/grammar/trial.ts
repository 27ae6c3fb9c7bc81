import { GrammarFailed } from "../sampling/token-mask.ts"
import type { Grammar } from "./constraint.ts"
import { GrammarInstance, strictLimits } from "./grammar-instance.ts"
import { byteVocabulary, type SharedVocabulary } from "./grammar-vocabulary.ts"
import { probe } from "./probe.ts"
import type { TextPlace } from "./schema/read-schema.ts"
import type { EnforcedSchema } from "./schema/reading.ts"
import { asked } from "./schema-report.ts"
import { repeatsIn } from "./thread-choice.ts"
import { unfoldedSize } from "./unfolded.ts"
import { webAssembly } from "./web-assembly.ts"

const mostMemoryBytes = 256 * 2 ** 20
/** Each takes tens of megabytes. */
const keptInstances = 2

/** Masks of each walk through a grammar, and through one of its texts. */
const grammarSteps = 24
const textSteps = 40

/** Parts of a text's patterns with their repetitions written out, some of which no walk reaches. */
const mostUnfolded = 100_000

/** A product of counted repetitions from which on a pattern is tried by itself. */
const manyRepeats = 50
const keptTexts = 4_096
/** Texts of one schema that are tried: a few milliseconds each. */
const mostTrials = 200

/** What others should not wait for. It only decides which thread follows an answer. */
const heavyMs = 10
/** The same of an analysis, which takes longer the first time that a format or class is used. */
export const heavyAnalysisMs = 50

/** Where no model is named: a token for each byte. */
export const byteTokens: SharedVocabulary = { ...byteVocabulary(), digest: "bytes" }

// each thread of the pool has its own, by the vocabulary's digest, least recently used first
const instances = new Map<string, GrammarInstance>()
/** What was found out about a text, by the vocabulary and the text; "": it works. */
const texts = new Map<string, string>()

const instanceOf = (vocabulary: SharedVocabulary): GrammarInstance => {
  const { digest } = vocabulary
  const known = instances.get(digest)
  const instance =
    known && known.memoryBytes <= mostMemoryBytes
      ? known
      : new GrammarInstance(vocabulary, undefined, strictLimits)
  instances.delete(digest)
  if (instances.size >= keptInstances) instances.delete(instances.keys().next().value!)
  instances.set(digest, instance)
  return instance
}

/** Compiles a grammar and walks through it; returns the longest time of a call. */
const attempt = (
  vocabulary: SharedVocabulary,
  kind: Grammar["kind"],
  text: string,
  steps: number,
): number => {
  const instance = instanceOf(vocabulary)
  try {
    const startedMs = performance.now()
    const matcher = instance.compile(kind, text)
    const compileMs = performance.now() - startedMs
    try {
      return Math.max(compileMs, probe(instance, matcher, vocabulary, steps))
    } finally {
      instance.free(matcher)
    }
  } catch (cause) {
    if (!(cause instanceof webAssembly.RuntimeError || cause instanceof RangeError)) throw cause
    instances.delete(vocabulary.digest)
    throw new GrammarFailed("the grammar is too complex", { cause })
  }
}

/**
 * Compiles a grammar over a model's tokens and writes a few documents by chance, so that what would
 * fail in the middle of an answer fails before. The limits are stricter than those of answers.
 * Returns whether compiling or a mask takes long. Throws `GrammarFailed`.
 */
export const tryGrammar = (
  vocabulary: SharedVocabulary,
  kind: Grammar["kind"],
  text: string,
): { readonly isHeavy: boolean } => ({
  isHeavy: attempt(vocabulary, kind, text, grammarSteps) > heavyMs,
})

/** Returns why a text fails in the middle, by itself; undefined: it does not, or is impossible. */
const failureOfText = (
  vocabulary: SharedVocabulary,
  text: string,
  size: number,
): string | undefined => {
  if (size > mostUnfolded) return `it unfolds into ${size} parts; at most ${mostUnfolded} are kept`
  const key = `${vocabulary.digest} ${text}`
  const known = texts.get(key)
  if (known !== undefined) return known || undefined
  let found = ""
  try {
    attempt(vocabulary, "schema", text, textSteps)
  } catch (cause) {
    if (!(cause instanceof GrammarFailed)) throw cause
    // whether a document is possible at all is found out with the whole grammar
    if (!/Unsatisfiable schema|NoExtension/.test(cause.message))
      found = `it unfolds into too many states (${cause.message.split("\n")[0]!.slice(0, 200)})`
  }
  if (texts.size >= keptTexts) texts.delete(texts.keys().next().value!)
  texts.set(key, found)
  return found || undefined
}

/** The size of the patterns of a text, unfolded. */
const sizeOf = (schema: EnforcedSchema): number => {
  if (typeof schema === "boolean") return 0
  const { pattern, allOf = [] } = schema
  const inside = (allOf as readonly EnforcedSchema[]).map(sizeOf)
  return inside.reduce(
    (sum, size) => sum + size,
    typeof pattern === "string" ? unfoldedSize(pattern) : 0,
  )
}

const needsTrial = (text: string): boolean =>
  repeatsIn(text) >= manyRepeats ||
  (text.includes('"pattern"') && /"allOf"|"(?:min|max)Length"/.test(text))

/** Returns the text whose pattern unfolds most; undefined: none has a pattern. */
export const heaviestText = (places: readonly TextPlace[]): TextPlace | undefined => {
  const weights = places
    .filter(({ keyword }) => keyword === "pattern")
    .map((place) => ({ place, repeats: repeatsIn(JSON.stringify(place.schema)) }))
  return weights.sort((a, b) => b.repeats - a.repeats)[0]?.place
}

/** Returns the keywords of texts that would fail in the middle of an answer, with the reasons. */
export const failingTexts = (
  vocabulary: SharedVocabulary,
  places: readonly TextPlace[],
): readonly (TextPlace & { readonly reason: string })[] => {
  const tried = new Set<string>()
  const failureOf = (text: string, size: number): string | undefined => {
    if (!tried.has(text) && tried.size === mostTrials)
      return `more than ${mostTrials} texts unfold into many states`
    tried.add(text)
    return failureOfText(vocabulary, text, size)
  }
  return places.flatMap((place) => {
    if (typeof place.schema === "boolean") return []
    const text = JSON.stringify(asked(place.schema))
    const reason = needsTrial(text) ? failureOf(text, sizeOf(place.schema)) : undefined
    return reason === undefined ? [] : [{ ...place, reason }]
  })
}
