import { Effect, Fiber, Stream } from "effect"
import type { PortError, StorageError, StoredFile } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import type { BatchRow } from "../tables.ts"
import type { Stop } from "./cancellation.ts"
import { commitLines, giveBack } from "./commit.ts"
import { makeTray, type Tray } from "./commit-buffer.ts"
import type { Purse } from "./hold-tracker.ts"
import type { Gate, Seat } from "./line-scheduler.ts"
import { makeProgress, type Progress } from "./progress.ts"
import { answeredLines } from "./results.ts"
import { type LineParts, type LineResult, runLine } from "./run-line.ts"
import { compact } from "./segments.ts"

/** An answer on its way into the database. */
interface Done {
  readonly result: LineResult
  readonly seat: Seat
}

/** One batch in work. */
export interface Work {
  readonly deps: BatchDeps
  readonly gate: Gate
  /** One of the process puts a part at a time: each holds a page of answers. */
  readonly onePart: <A, E>(put: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** That of the key. */
  readonly purse: Purse
  readonly stop: Stop
  readonly row: BatchRow
}

interface Run extends Work {
  readonly parts: LineParts
  readonly tray: Tray<Done>
  readonly progress: Progress
  readonly fibers: Set<Fiber.Fiber<void>>
}

const trayOptions = {
  maxItems: 64,
  maxBytes: 4_194_304,
  lingerMs: 400,
  bytesOf: ({ result }: Done) => result.body.length,
}
const progressOptions = { partBytes: 8_388_608, partLines: 4_096, maxLines: 8_192 }

/** Text and parsed body are in memory at once. */
const copies = 2

/** Interrupted, the line is given up, and its seat is free. */
const begin = (
  { parts, tray, purse, fibers }: Run,
  raw: RawLine,
  place: Seat,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    tray.began()
    const stake = purse.stake()
    const leaveBoth = () => {
      stake.leave()
      place.leave()
    }
    const seat: Seat = { ...place, leave: leaveBoth }
    let done: Done | undefined
    const keep = (result: LineResult | undefined) =>
      Effect.sync(() => {
        if (!result) return
        seat.ended(result.body.length * copies)
        done = { result, seat }
      })
    const leave = Effect.sync(() => {
      if (!done) seat.leave()
      tray.ended(done)
      // what it holds is given back by its commit, and a line may wait for that
      if (purse.isWanted) tray.nudge()
    })
    const more = Effect.suspend(() => {
      tray.nudge()
      return stake.more
    })
    const run = Effect.ensuring(
      Effect.flatMap(runLine(parts, raw, { ...stake, more, resting: place.resting }), keep),
      leave,
    )
    return Effect.map(Effect.forkDetach(run, { startImmediately: true }), (fiber) => {
      fibers.add(fiber)
      fiber.addObserver(() => fibers.delete(fiber))
    })
  })

/** Begins one line after the other, as the gate lets them in. */
const dispatch = (run: Run, input: StoredFile): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, gate, tray, progress } = run
    const answered = yield* answeredLines(deps, row.id)
    const offset = Number(row.done_offset)
    const lines = jsonLines(deps.files.read(input, { from: offset }), {
      maxLineBytes: deps.limits.maxLineBytes,
      from: { line: row.done_through + 1, offset },
    })
    yield* Stream.runForEach(lines, (raw) =>
      Effect.gen(function* () {
        yield* progress.room
        progress.passed(raw.line, raw.end)
        const bytes = answered.get(raw.line)
        if (bytes !== undefined) {
          progress.done(raw.line, bytes)
          if (progress.stretch) tray.nudge()
        } else {
          const seat = gate.enter(`${row.mode} ${row.account}`, (raw.end - raw.offset) * copies)
          yield* Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(restore(seat), (given) => begin(run, raw, given)),
          )
        }
      }),
    )
  })

const commit = (
  { deps, row, stop, progress }: Run,
  items: readonly Done[],
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    if (items.length === 0) return
    const results = items.map(({ result }) => result)
    const committed = yield* Effect.onError(commitLines(deps, row, results), () =>
      giveBack(deps, results),
    )
    if (committed === "lost") yield* giveBack(deps, results)
    if (committed === "kept") for (const { line, body } of results) progress.done(line, body.length)
    else stop.tell(committed === "lost" ? "lost" : "cancelled")
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        for (const { seat } of items) seat.leave()
      }),
    ),
  )

const compactIfWorth = ({
  deps,
  row,
  stop,
  progress,
  onePart,
}: Run): Effect.Effect<void, StorageError> =>
  Effect.suspend(() => {
    const { stretch } = progress
    if (!stretch || stop.reason) return Effect.void
    return Effect.map(
      onePart(compact(deps, row, stretch)),
      (isDone) => isDone && progress.forget(stretch),
    )
  })

/** Until nothing can come any more, or somebody else has the batch. */
const collect = (run: Run): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { tray, stop } = run
    const turn = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(tray.ready), () => {
        const { items, isOver } = tray.take()
        return Effect.as(commit(run, items), isOver)
      }),
    )
    for (let isOver = false; !isOver && stop.reason !== "lost"; ) {
      isOver = yield* turn
      yield* compactIfWorth(run)
    }
  })

/** Lines that run are given up; those that have ended are committed, unless they can't be. */
const windUp = (run: Run): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Fiber.interruptAll([...run.fibers])
    const rest = run.tray.rest()
    if (run.stop.reason === "lost")
      yield* giveBack(
        run.deps,
        rest.map(({ result }) => result),
      )
    else yield* Effect.ignore(commit(run, rest))
    for (const { seat } of rest) seat.leave()
  })

/** Runs what of a batch has not run. Ends when all is committed, or when it is stopped and what ran is committed. */
export const runLines = (
  work: Work,
  input: StoredFile,
  parts: LineParts,
): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const run: Run = {
      ...work,
      parts,
      tray: makeTray(trayOptions),
      progress: makeProgress(progressOptions),
      fibers: new Set(),
    }
    // where the input can't be read on, the lines in flight still end
    const dispatching = Effect.exit(work.stop.during(dispatch(run, input))).pipe(
      Effect.ensuring(Effect.sync(run.tray.close)),
    )
    const [read] = yield* Effect.all([dispatching, collect(run)], { concurrency: 2 }).pipe(
      Effect.ensuring(windUp(run)),
    )
    yield* read
  })
