import { Effect, Exit, type Scope, Stream } from "effect"
import type { ApiError, BlobInfo, PlanError, PortError } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { abandonIncoming, growIncoming, type Incoming } from "./incoming.ts"

/** Of a body whose length nobody announced. */
const stepBytes = 8 * 2 ** 20

/**
 * Nothing of the blob stays unless the Scope ends well, and whoever ends it well has named the blob by a row.
 * States: (row) -> written -> named (its row makes place for another) | abandoned (by us when anything fails or is interrupted, by the sweeper when we died).
 */
export const openIncoming = <I extends Incoming, E>(
  deps: FilesDeps,
  begin: Effect.Effect<I, E>,
): Effect.Effect<I, E, Scope.Scope> =>
  Effect.acquireRelease(begin, ({ id }, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignore(abandonIncoming(deps, id)),
  )

/** Takes its share of the quota before the bytes are written: what was announced at once, as far as there is room, and what is missing step by step. */
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
      // what is over the limit of a file is refused by the store, for that reason
      return bytes <= held || bytes > maxFileBytes
        ? Effect.succeed(chunk)
        : Effect.as(grow(bytes - held, stepBytes), chunk)
    })
    // form fields take some of what was announced, so the file may still fit where all of it does not
    return Stream.concat(Stream.fromEffectDrain(grow(0, announcedBytes)), counted)
  }
}

export const write = (
  deps: FilesDeps,
  incoming: Incoming,
  body: Stream.Stream<Uint8Array, PlanError>,
  maxBytes: number,
): Effect.Effect<BlobInfo, PlanError> => deps.storage.put(incoming.blobKey, body, maxBytes)
