import { Effect } from "effect"

/** Runs promise code as an Effect. Interruption aborts the signal and waits until the code has cleaned up. What it throws is a defect. */
export const interruptible = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    const controller = new AbortController()
    const done = work(controller.signal).then(
      (value) => resume(Effect.succeed(value)),
      (error) => resume(Effect.die(error)),
    )
    return Effect.promise(() => {
      controller.abort()
      return done
    })
  })
