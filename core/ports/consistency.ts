import { Effect, Option, Stream } from "effect"
import type { PortError } from "../errors.ts"

/** An inconsistency between stored data. */
export interface Finding {
  /** What it is about: `file file-abc`, `blob files/...`, `batch batch-abc`. */
  readonly subject: string
  readonly problem: string
  /** What the repair does, in words: `it is removed`. Absent: needs a person. */
  readonly remedy?: string
  /** Performs the repair. Idempotent. */
  readonly repair?: Effect.Effect<void, PortError>
}

/**
 * Behind `rakit fsck`: each plugin compares its data with the data of others. Runs beside a server,
 * so work in progress is no finding.
 */
export interface ConsistencyCheck {
  /** `files` */
  readonly name: string
  /** One sentence. */
  readonly about: string
  /**
   * Reports how many items it examined through `looked`. Reads in pages: never everything in
   * memory.
   */
  findings(looked: (things: number) => void): Stream.Stream<Finding, PortError>
}

const rowsPerPage = 500

export interface PagedRows<Row> {
  /** Returns the rows after this one, in a stable order. */
  page(after: Row | undefined, limit: number): Effect.Effect<readonly Row[], PortError>
  judge(rows: readonly Row[]): Effect.Effect<readonly Finding[], PortError>
}

/** Streams the findings of a whole table, page by page. */
export const inPages = <Row>(
  { page, judge }: PagedRows<Row>,
  looked: (things: number) => void,
): Stream.Stream<Finding, PortError> =>
  Stream.paginate(undefined as Row | undefined, (after) =>
    Effect.gen(function* () {
      const rows = yield* page(after, rowsPerPage)
      looked(rows.length)
      const next =
        rows.length < rowsPerPage ? Option.none<Row>() : Option.fromNullishOr(rows.at(-1))
      return [yield* judge(rows), next] as const
    }),
  )
