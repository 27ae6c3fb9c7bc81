import { Effect, Option, Stream } from "effect"
import type { PortError } from "../errors.ts"

/** Something that does not agree with something else. */
export interface Finding {
  /** What it is about: `file file-abc`, `blob files/...`, `batch batch-abc`. */
  readonly subject: string
  readonly problem: string
  /** What the repair does, in words: `it is removed`. Absent: a person has to look. */
  readonly remedy?: string
  /** Does it. Again is harmless. */
  readonly repair?: Effect.Effect<void, PortError>
}

/** Behind `rakit fsck`: each plugin compares what it keeps with what others keep. Runs beside a server, so what is just being made is no finding. */
export interface ConsistencyCheck {
  /** `files` */
  readonly name: string
  /** One sentence. */
  readonly about: string
  /** Adds to what was looked at through `looked`. Pages and streams: never all of it in memory. */
  findings(looked: (things: number) => void): Stream.Stream<Finding, PortError>
}

const rowsPerPage = 500

export interface PagedRows<Row> {
  /** The rows that come after this one, in an order of their own. */
  page(after: Row | undefined, limit: number): Effect.Effect<readonly Row[], PortError>
  judge(rows: readonly Row[]): Effect.Effect<readonly Finding[], PortError>
}

/** The findings of a whole table. */
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
