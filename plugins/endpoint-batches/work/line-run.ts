import { Effect, Exit, type Fiber } from "effect"
import type { CommitBuffer } from "./commit-buffer.ts"
import type { HoldTracker } from "./hold-tracker.ts"
import type { LineScheduler, Permit } from "./line-scheduler.ts"
import type { LineAccess, LineResult } from "./run-line.ts"

/** A line in the commit buffer. */
export interface AnsweredLine {
  readonly result: LineResult
  /** After its commit, or when it is given up. Idempotent. */
  release(): void
}

/** What the lines of one batch share. */
export interface LineResources {
  readonly scheduler: LineScheduler
  readonly holds: HoldTracker
  readonly buffer: CommitBuffer<AnsweredLine>
  /** Fibers of the lines that run. */
  readonly fibers: Set<Fiber.Fiber<void>>
}

/** Text and parsed body are in memory at once. */
export const copiesInMemory = 2

interface LineRun {
  readonly access: LineAccess
  /** Called once, however the run ended. */
  ended(exit: Exit.Exit<LineResult | undefined>): void
}

/**
 * One line from its admission to its commit: the only owner of its permit, its hold and its entry
 * in the commit buffer.
 *
 * States: running -> answered (has a result) -> released; running -> released (was not run:
 * cancelled, interrupted, or a defect).
 * `answered` frees the slot; `release` frees all that is left, once, whichever state it comes from.
 */
const makeLineRun = ({ holds, buffer }: LineResources, permit: Permit): LineRun => {
  const hold = holds.open()
  let state: "running" | "answered" | "released" = "running"
  buffer.expect()

  const release = (): void => {
    if (state === "released") return
    const isInBuffer = state === "answered"
    state = "released"
    hold.release()
    permit.release()
    if (!isInBuffer) buffer.abandon()
  }

  const answered = (result: LineResult): void => {
    state = "answered"
    permit.answered(result.body.length * copiesInMemory)
    buffer.put({ result, release })
  }

  return {
    access: {
      attempt: hold.attempt,
      resting: permit.resting,
      // answered lines of this batch keep their holds until they are committed
      moneyFreed: Effect.suspend(() => {
        buffer.flush()
        return hold.freed
      }),
    },
    ended: (exit) => {
      if (Exit.isSuccess(exit) && exit.value) answered(exit.value)
      else release()
      // its commit releases its hold, and a line may wait for that
      if (holds.isAwaited) buffer.flush()
    },
  }
}

/**
 * Waits for a permit, and starts the line in a fiber of its own. Interrupted while it waits, it
 * takes nothing. `bytes`: the size of its text.
 */
export const startLine = (
  resources: LineResources,
  { tenant, bytes }: { readonly tenant: string; readonly bytes: number },
  run: (access: LineAccess) => Effect.Effect<LineResult | undefined>,
): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      restore(resources.scheduler.acquire(tenant, bytes * copiesInMemory)),
      (permit) => {
        const { access, ended } = makeLineRun(resources, permit)
        const whole = Effect.onExit(run(access), (exit) => Effect.sync(() => ended(exit)))
        // started at once, so that an interruption can't come before `onExit` is in place
        const forked = Effect.forkDetach(Effect.asVoid(whole), { startImmediately: true })
        return Effect.map(forked, (fiber) => {
          resources.fibers.add(fiber)
          fiber.addObserver(() => resources.fibers.delete(fiber))
        })
      },
    ),
  )
