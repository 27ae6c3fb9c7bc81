import { Deferred, Effect, Fiber } from "effect"

interface Flight<A, E> {
  readonly result: Deferred.Deferred<A, E>
  /** Undefined only while the first caller starts it. */
  fiber?: Fiber.Fiber<A, E>
  callers: number
  hasEnded: boolean
}

export interface SingleFlight<A, E> {
  /** Joins the run of this key, or begins one with `work`. */
  run(key: string, work: Effect.Effect<A, E>): Effect.Effect<A, E>
  /** The number of runs that have not ended, including forgotten ones. */
  readonly size: number
  /** Later callers begin anew; runs in flight go on for the callers that they have. */
  forget(): void
}

/**
 * Callers with the same key share one run: its result, failure or defect goes to all of them, and
 * is not kept.
 * States of a key: idle -> running (the first caller begins it; others join) -> idle (it ended);
 * running -> ending (the last caller was interrupted, so the run is, too) -> idle (it ended).
 * Callers that come while a run is ending wait for that, then begin a new one: no two runs of one
 * key are side by side.
 * `forget` moves every key to idle at once, so a forgotten run may have a new one beside it.
 */
export const makeSingleFlight = <A, E>(): SingleFlight<A, E> => {
  const flights = new Map<string, Flight<A, E>>()
  let size = 0

  const add = (key: string): Flight<A, E> => {
    const flight = { result: Deferred.makeUnsafe<A, E>(), callers: 1, hasEnded: false }
    flights.set(key, flight)
    size++
    return flight
  }

  const start = (key: string, flight: Flight<A, E>, work: Effect.Effect<A, E>) =>
    work.pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          flight.hasEnded = true
          size--
          if (flights.get(key) === flight) flights.delete(key)
          Deferred.doneUnsafe(flight.result, exit)
        }),
      ),
      // at once: a fiber that is interrupted before it starts runs no onExit
      Effect.forkDetach({ startImmediately: true }),
    )

  const leave = (flight: Flight<A, E>) =>
    Effect.suspend(() => {
      flight.callers--
      const isAbandoned = flight.callers === 0 && !flight.hasEnded
      return isAbandoned && flight.fiber ? Fiber.interrupt(flight.fiber) : Effect.void
    })

  return {
    run: (key, work) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          let flight = flights.get(key)
          while (flight?.callers === 0) {
            yield* restore(Effect.exit(Deferred.await(flight.result)))
            flight = flights.get(key)
          }
          // no yield between the look and the change: it could let another caller in
          if (flight) flight.callers++
          else {
            flight = add(key)
            flight.fiber = yield* start(key, flight, work)
          }
          return yield* Effect.ensuring(restore(Deferred.await(flight.result)), leave(flight))
        }),
      ),
    get size() {
      return size
    },
    forget: () => flights.clear(),
  }
}
