import { Effect, Exit, type Scope, Stream } from "effect"
import type { ApiError, BlobInfo, PlanError, PortError } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { abandonIncoming, growIncoming, type Incoming } from "./incoming.ts"

/** The quota taken at a time for a body without an announced length. */
const stepBytes = 8 * 2 ** 20

/**
 * Nothing of the blob stays unless the Scope closes with success, and by then another row must name
 * the blob.
 * States: (row inserted) -> written -> named (its row is replaced by another) | abandoned (by this
 * process on failure or
 * interruption, by the sweeper when the process died).
 */
export const openIncoming = <I extends Incoming, E>(
  deps: FilesDeps,
  begin: Effect.Effect<I, E>,
): Effect.Effect<I, E, Scope.Scope> =>
  Effect.acquireRelease(begin, ({ id }, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignore(abandonIncoming(deps, id)),
  )

/**
 * Takes quota before the bytes are written: the announced length at once, as far as it fits, and
 * what is missing in steps.
 */
export const withQuota = (deps: FilesDeps, incoming: Incoming, announcedBytes = 0) => {
  const { maxFileBytes } = deps.limits
  let held = 0
  let bytes = 0
  const grow = (need: number, want: number) =>
    Effect.map(
      growIncoming(deps, incoming, {
        need,
        want: Math.max(need, Math.min(want, maxFileBytes - held)),
      }),
      (taken) => {
        held += taken
      },
    )
  return <E>(
    body: Stream.Stream<Uint8Array, E>,
  ): Stream.Stream<Uint8Array, E | ApiError | PortError> => {
    const counted = Stream.mapEffect(body, (chunk) => {
      bytes += chunk.byteLength
      // bytes over the limit of a file are refused by the store, with that error
      return bytes <= held || bytes > maxFileBytes
        ? Effect.succeed(chunk)
        : Effect.as(grow(bytes - held, stepBytes), chunk)
    })
    // the announced length includes the form's fields, so the file may fit where the whole request
    // does not
    return Stream.concat(Stream.fromEffectDrain(grow(0, announcedBytes)), counted)
  }
}

export const write = (
  deps: FilesDeps,
  incoming: Incoming,
  body: Stream.Stream<Uint8Array, PlanError>,
  maxBytes: number,
): Effect.Effect<BlobInfo, PlanError> => deps.storage.put(incoming.blobKey, body, maxBytes)
