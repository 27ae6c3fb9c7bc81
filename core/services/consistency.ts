import type { Effect, Stream } from "effect"
import type { PortError } from "../errors.ts"

/** Something that does not agree with something else. */
export interface Finding {
  /** What it is about: `file file-abc`, `blob files/...`, `batch batch-abc`. */
  readonly subject: string
  readonly problem: string
  /** What mending does, in words; absent: a person has to look. */
  readonly remedy?: string
  /** Does it. Again is harmless. */
  readonly mend?: Effect.Effect<void, PortError>
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
