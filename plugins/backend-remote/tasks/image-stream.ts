import { Effect, Option, type Scope, Stream } from "effect"
import type { ImageEvent } from "../../../core/ports/image.ts"
import type { ImageRequest } from "../../../core/ports/model.ts"
import { EventStreamParser } from "../upstream/event-stream.ts"
import { connectionFailure, failure, type UpstreamFailure } from "../upstream/failure.ts"
import { errorText } from "../upstream/status-failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import { imageCall } from "./image-body.ts"
import { fieldsOf } from "./json-task.ts"
import { checkPicture, decodePicture, maxPictureBytes } from "./picture.ts"

/** A picture in base64, with the rest of its event. */
const maxEventBytes = Math.ceil((maxPictureBytes * 4) / 3) + 65_536

/** What came so far; undefined when the stream has ended with its picture. */
type Page = readonly ImageEvent[] | undefined

/** The steps of a picture that is drawn elsewhere, as far as something shows them. */
export const stepsUpTo = (from: number, to: number, steps: number): readonly ImageEvent[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => ({
    type: "step",
    step: from + index + 1,
    steps,
  }))

/**
 * Reads OpenAI's events of a picture: previews, then the picture. Servers do not say the steps of
 * their previews, which are spread evenly.
 */
class PictureReader {
  isDone = false
  private previews = 0
  private step = 0
  private readonly request: ImageRequest
  private readonly steps: number

  /** `steps`: how many there are, where the server keeps the number; else one for each preview. */
  constructor(request: ImageRequest, steps: number) {
    this.request = request
    this.steps = steps
  }

  /** Throws an `UpstreamFailure`. */
  read(data: string): readonly ImageEvent[] {
    if (this.isDone || data.trim() === "[DONE]") return []
    let event: unknown
    try {
      event = JSON.parse(data)
    } catch {
      throw failure("garbled", "an event is not JSON")
    }
    const { type, b64_json, error } = fieldsOf(event)
    if (error) throw failure("unavailable", `it failed: ${errorText(event).slice(0, 300)}`)
    const kind = String(type).split(".").at(-1)
    if (kind !== "partial_image" && kind !== "completed") return []
    if (typeof b64_json !== "string") throw failure("garbled", "an event has no picture")
    const bytes = decodePicture(b64_json)
    return kind === "completed" ? this.picture(bytes) : this.preview(checkPicture(bytes))
  }

  private preview(bytes: Uint8Array): readonly ImageEvent[] {
    const { previews = 0 } = this.request
    this.previews++
    if (this.previews > previews) return []
    const at = Math.floor((this.steps * this.previews) / (previews + 1))
    const step = Math.min(this.steps, Math.max(this.step + 1, at))
    if (step <= this.step) return []
    const before = stepsUpTo(this.step, step - 1, this.steps)
    this.step = step
    return [...before, { type: "step", step, steps: this.steps, preview: bytes }]
  }

  private picture(bytes: Buffer): readonly ImageEvent[] {
    this.isDone = true
    checkPicture(bytes, this.request)
    const rest = stepsUpTo(this.step, this.steps, this.steps)
    return [...rest, { type: "image", mediaType: "image/png", bytes }]
  }
}

export interface OpenedPicture {
  readonly first: Page
  next(timeoutMs: number): Effect.Effect<Page, UpstreamFailure>
}

/** One request to one upstream, up to the first event of its stream. */
export const openPicture = (
  request: ImageRequest,
  upstream: Upstream,
  timeoutMs: number,
): Effect.Effect<OpenedPicture, UpstreamFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const { path, body } = imageCall(request, upstream)
    const reply = yield* upstream.connection.call(path, body, timeoutMs)
    if (!/^text\/event-stream\b/i.test(reply.contentType))
      return yield* failure("garbled", `it sent ${reply.contentType || "no type"}, not a stream`)
    const steps = upstream.features.has("num_steps") ? request.steps : (request.previews ?? 0)
    const reader = new PictureReader(request, steps)
    const parser = new EventStreamParser(maxEventBytes)
    const pieces = reply.body[Symbol.asyncIterator]()
    const read = async (): Promise<Page> => {
      while (!reader.isDone) {
        const piece = await pieces.next()
        const data = piece.done ? parser.end() : parser.push(piece.value)
        const events = data.flatMap((one) => reader.read(one))
        if (events.length > 0) return events
        if (piece.done) throw failure("cut", "the stream ended without a picture")
      }
      return undefined
    }
    const next = (ms: number) =>
      Effect.tryPromise({ try: read, catch: (cause) => connectionFailure(cause, true) }).pipe(
        Effect.timeoutOrElse({
          duration: Math.max(0, ms),
          orElse: () => Effect.fail(failure("slow", `nothing of a picture within ${ms} ms`)),
        }),
      )
    return { first: yield* next(timeoutMs), next }
  })

/** The events of an opened picture; `ms` is how long the next may take. */
export const eventsOf = (
  { first, next }: OpenedPicture,
  ms: () => number,
): Stream.Stream<ImageEvent, UpstreamFailure> =>
  Stream.paginate(true, (isFirst) =>
    Effect.map(isFirst ? Effect.succeed(first) : next(ms()), (page) =>
      page === undefined
        ? ([[] as readonly ImageEvent[], Option.none<boolean>()] as const)
        : ([page, Option.some(false)] as const),
    ),
  )
