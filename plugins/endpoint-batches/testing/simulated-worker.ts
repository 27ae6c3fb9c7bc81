import { Effect, Stream } from "effect"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import { preflight } from "../preflight/preflight.ts"
import type { BatchRow } from "../tables.ts"
import { makeCancellation } from "../work/cancellation.ts"
import { claimBatch } from "../work/claim.ts"
import { commitLines, voidLines } from "../work/commit.ts"
import { finish } from "../work/finish.ts"
import { makeHoldTracker } from "../work/hold-tracker.ts"
import { beginLines } from "../work/lease.ts"
import { makeProgress, type Progress } from "../work/progress.ts"
import { answeredLines } from "../work/results.ts"
import { type LineResult, runLine } from "../work/run-line.ts"
import { writeSegment } from "../work/segments.ts"
import type { WorkFixture } from "./work-fixture.ts"

interface Session {
  readonly row: BatchRow
  readonly left: RawLine[]
  readonly progress: Progress
  answered: LineResult[]
}

/**
 * A worker that makes one move at a time, when the test says so. A failure ends its session as a
 * crash ends a process: it forgets everything,
 * and its lease runs out. The moves are those of the real worker; only their order is the test's.
 */
export class SimulatedWorker {
  private session: Session | undefined
  private readonly fixture: WorkFixture
  constructor(fixture: WorkFixture) {
    this.fixture = fixture
  }

  get works(): boolean {
    return this.session !== undefined
  }

  /** The process is gone. */
  die(): void {
    this.session = undefined
  }

  private async careful(move: () => Promise<unknown>): Promise<void> {
    await move().catch(() => this.die())
  }

  claim(id: string): Promise<void> {
    return this.careful(async () => {
      const { deps } = this.fixture
      this.die()
      const claimed = await Effect.runPromise(claimBatch(deps, id))
      if (!claimed) return
      if (deps.clock.nowMs() >= claimed.deadline_at.getTime())
        return void (await Effect.runPromise(finish(deps, claimed, { status: "expired" })))
      const row = claimed.status === "validating" ? await this.check(claimed) : claimed
      if (row)
        this.session = { row, left: await this.read(row), progress: this.progress, answered: [] }
    })
  }

  private progress = makeProgress({ segmentBytes: 1, segmentLines: 1, maxLines: 1_000 })

  private async check(row: BatchRow): Promise<BatchRow | undefined> {
    const verdict = await Effect.runPromise(preflight(this.fixture.deps, row))
    if ("total" in verdict) return Effect.runPromise(beginLines(this.fixture.deps, row, verdict))
    await Effect.runPromise(
      finish(this.fixture.deps, row, { status: "failed", errors: verdict.errors }),
    )
    return undefined
  }

  private async read(row: BatchRow): Promise<RawLine[]> {
    const { files, limits } = this.fixture.deps
    const input = await Effect.runPromise(
      files.find({ account: row.account, mode: row.mode }, row.input_file_id),
    )
    const offset = Number(row.done_offset)
    const lines = jsonLines(files.read(input!, { from: offset }), {
      maxLineBytes: limits.maxLineBytes,
      from: { line: row.done_through + 1, offset },
    })
    const all = await Effect.runPromise(Stream.runCollect(lines))
    const answered = await Effect.runPromise(answeredLines(this.fixture.deps, row.id))
    this.progress = makeProgress({ segmentBytes: 1, segmentLines: 1, maxLines: 1_000 })
    for (const { line, end } of all) this.progress.passed(line, end)
    for (const [line, bytes] of answered) this.progress.done(line, bytes)
    return all.filter(({ line }) => !answered.has(line))
  }

  /** Runs one of the remaining lines. */
  run(pick: number): Promise<void> {
    return this.careful(async () => {
      const { session } = this
      if (!session) return
      const [raw] = session.left.splice(pick % Math.max(1, session.left.length), 1)
      if (!raw) return
      const { deps } = this.fixture
      const lineDeps = {
        deps,
        batch: session.row,
        target: deps.targets.get(session.row.endpoint)!,
        cancellation: makeCancellation(),
        random: Math.random,
      }
      const { attempt, freed } = makeHoldTracker().open()
      const access = { attempt, moneyFreed: freed, resting: <A>(wait: A) => wait }
      const result = await Effect.runPromise(runLine(lineDeps, raw, access))
      if (result) session.answered.push(result)
    })
  }

  commit(): Promise<void> {
    return this.careful(async () => {
      const { session } = this
      if (!session || session.answered.length === 0) return
      const results = session.answered
      session.answered = []
      const committed = await Effect.runPromise(
        Effect.onError(commitLines(this.fixture.deps, session.row, results), () =>
          voidLines(this.fixture.deps, results),
        ),
      )
      if (committed === "lost") await Effect.runPromise(voidLines(this.fixture.deps, results))
      if (committed !== "kept") this.die()
      for (const { line, body } of results) session.progress.done(line, body.length)
    })
  }

  compact(): Promise<void> {
    return this.careful(async () => {
      const range = this.session?.progress.completed
      if (!this.session || !range) return
      if (await Effect.runPromise(writeSegment(this.fixture.deps, this.session.row, range)))
        this.session.progress.forget(range)
    })
  }

  /** Finishes the batch, if every line is committed. */
  finish(): Promise<void> {
    return this.careful(async () => {
      if (!this.session || this.session.left.length > 0 || this.session.answered.length > 0) return
      await Effect.runPromise(finish(this.fixture.deps, this.session.row, { status: "completed" }))
      this.die()
    })
  }
}
