import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Tenant } from "../../../core/index.ts"
import { anyOfWords, oneWord, wordsIn } from "../documents/words.ts"
import type { VectorSpace } from "../vectors/space.ts"
import type { SearchDeps } from "./deps.ts"
import type { Ranked } from "./fusion.ts"
import { type Restriction, restricted, searchable } from "./scope.ts"

/** A word of the query, and in how many of the tenant's chunks it is, counted up to a maximum. */
export interface CountedWord {
  readonly word: string
  readonly chunks: number
}

export interface FoundByWords {
  readonly ranked: readonly Ranked[]
  /** Those that are in some chunk, the rarest first. */
  readonly words: readonly CountedWord[]
}

/** A longer query is searched by its longest words, which are the rare ones as a rule. */
const maxWords = 32
/** Chunks that are counted for a word, and that are ranked. */
const maxChunks = 4_000

const chosen = (query: string): readonly string[] =>
  [...new Set(wordsIn(query))].sort((a, b) => b.length - a.length).slice(0, maxWords)

const countChunks = ({ database }: SearchDeps, tenant: Tenant, words: readonly string[]) =>
  Effect.map(
    database.run(() =>
      sql<CountedWord & { readonly all: number }>`
        SELECT w.word,
          (SELECT count(*)::int FROM (SELECT 1 FROM retrieval_chunk c WHERE c.words @@ w.query::tsquery LIMIT ${maxChunks}) AS found) AS chunks,
          (SELECT coalesce(sum(d.chunks), 0)::int FROM retrieval_document d
            WHERE d.account = ${tenant.account} AND d.mode = ${tenant.mode} AND d.state = 'ready') AS all
        FROM unnest(${words}::text[], ${words.map((word) => anyOfWords(tenant, [word]))}::text[]) AS w (word, query)`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => ({
      all: rows[0]?.all ?? 0,
      words: rows
        .filter(({ chunks }) => chunks > 0)
        .map(({ word, chunks }) => ({ word, chunks }))
        .sort((a, b) => a.chunks - b.chunks),
    }),
  )

/** Chunks without one of these are not ranked: common words alone say little. */
const rareOf = (words: readonly CountedWord[]): readonly string[] => {
  let sum = 0
  return words
    .filter(({ chunks }, at) => {
      sum += chunks
      return at === 0 || sum <= maxChunks
    })
    .map(({ word }) => word)
}

/** The weight of a word in BM25. */
const weightOf = (all: number, { chunks }: CountedWord): number =>
  Math.log(1 + Math.max(0, all - chunks + 0.5) / (chunks + 0.5))

/**
 * The chunks with words of the query, best first, ranked in the manner of BM25 (Robertson, Zaragoza
 * 2009): a rare word counts more than a common one (`ts_rank` does not know how many chunks have
 * it), the second occurrence less than the first, and a short chunk more than a long one.
 */
export const searchWords = (
  deps: SearchDeps,
  tenant: Tenant,
  space: VectorSpace,
  {
    query,
    limit,
    restriction,
  }: {
    readonly query: string
    readonly limit: number
    readonly restriction: Restriction
  },
): Effect.Effect<FoundByWords, PortError> =>
  Effect.gen(function* () {
    const asked = chosen(query)
    if (asked.length === 0) return { ranked: [], words: [] }
    const { all, words } = yield* countChunks(deps, tenant, asked)
    if (words.length === 0) return { ranked: [], words }
    const { database, settings } = deps
    const lexemes = words.map(({ word }) => oneWord(word))
    const weights = words.map((word) => weightOf(all, word))
    const { rows } = yield* database.run(() =>
      sql<{ readonly no: bigint; readonly idx: number; readonly score: number }>`
        SELECT no, idx, score FROM (
          SELECT d.no, c.idx,
            (SELECT sum(w.weight * ts_rank(c.words, w.lexeme::tsquery)) FROM unnest(${weights}::float8[], ${lexemes}::text[]) AS w (weight, lexeme))
              / (1.3 + 0.9 * (c.end_at - c.start_at) / ${settings.chunkCharacters}::float8) AS score
          FROM retrieval_chunk c JOIN retrieval_document d ON d.no = c.document_no
          WHERE c.words @@ ${anyOfWords(tenant, rareOf(words))}::tsquery
            AND ${searchable(deps, tenant, space)} AND ${restricted(restriction)}
          LIMIT ${maxChunks}
        ) AS ranked
        ORDER BY score DESC, no, idx LIMIT ${limit}`.execute(database.queries()),
    )
    return {
      ranked: rows.map(({ no, idx, score }) => ({ document: no, index: idx, score })),
      words,
    }
  })
