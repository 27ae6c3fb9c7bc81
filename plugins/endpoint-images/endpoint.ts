import { Effect, type Schema, Stream } from "effect"
import { concat } from "../../core/concat.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import {
  type Call,
  defineEndpoint,
  megabyte,
  type Plan,
  type Reply,
} from "../../core/ports/endpoint.ts"
import type { ImageEvent } from "../../core/ports/image.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { readEditForm } from "./form-decoding.ts"
import { type GuardDeps, makeGuard } from "./guard.ts"
import { refusalOf } from "./refused-fields.ts"
import {
  evidenceOf,
  type Heading,
  toCompletedEvent,
  toFile,
  toPartialEvent,
  toReply,
} from "./reply-encoding.ts"
import {
  type Asked,
  adapterOf,
  readEdit,
  readGeneration,
  withDefaults,
} from "./request-decoding.ts"
import {
  EditBody,
  EditEvent,
  EditForm,
  type EventFamily,
  GenerationBody,
  GenerationEvent,
  type ImageBody,
  ImagesReply,
} from "./schema.ts"
import { namedAsSent } from "./source-decoding.ts"

export interface ImageEndpointDeps extends GuardDeps {
  readonly catalogue: Catalogue
}

type Events = Stream.Stream<ImageEvent, ApiError>

type Picture = Extract<ImageEvent, { readonly type: "image" }>

/** The picture as clients get it; the receipt has its digest. */
const finished = (
  call: Call<ImageBody>,
  asked: Heading,
  entry: ModelEntry,
  { bytes, ignored = [] }: Picture,
) => {
  const heading = { ...asked, ignored }
  const file = toFile(heading, bytes)
  call.context.note?.(evidenceOf(heading, entry, file))
  return file
}

const progressEveryMs = 10_000

/** Pictures that take long say in the log how far they are. */
const logged = (
  { clock, log }: ImageEndpointDeps,
  { context }: Call<ImageBody>,
  model: string,
  events: Events,
): Events => {
  let saidMs = clock.monotonicMs()
  const say = (event: ImageEvent) => {
    const nowMs = clock.monotonicMs()
    if (event.type !== "step" || nowMs - saidMs < progressEveryMs) return
    saidMs = nowMs
    const { step, steps } = event
    const fields = { call_id: context.callId, model, step, steps }
    log.info("image.progress", "a picture is being made", fields)
  }
  return Stream.tap(events, (event) => Effect.sync(() => say(event)))
}

const noPicture = () => apiError("backend_error", "The model stopped without a picture.")

const whole = (
  call: Call<ImageBody>,
  heading: Heading,
  entry: ModelEntry,
  events: Events,
): Effect.Effect<Reply, ApiError> =>
  Effect.gen(function* () {
    let file: Buffer | undefined
    yield* Stream.runForEach(events, (event) =>
      Effect.sync(() => {
        if (event.type === "image") file = finished(call, heading, entry, event)
      }),
    )
    return file ? { status: 200, json: toReply(heading, file, call) } : yield* noPicture()
  })

const streamed = (
  call: Call<ImageBody>,
  heading: Heading,
  entry: ModelEntry,
  events: Events,
): Reply => {
  let previews = 0
  let isDone = false
  const encode = (event: ImageEvent): readonly Json[] => {
    if (event.type === "step")
      return event.preview ? [toPartialEvent(heading, previews++, event.preview)] : []
    isDone = true
    return [toCompletedEvent(heading, finished(call, heading, entry, event), call)]
  }
  const end = Stream.fromEffectDrain(Effect.suspend(() => (isDone ? Effect.void : noPicture())))
  return {
    status: 200,
    events: concat(Stream.flattenIterable(Stream.map(events, encode)), end),
  }
}

const refuseEdits = (
  { capabilities }: { readonly capabilities: readonly string[] },
  { id }: ModelEntry,
): Effect.Effect<void, ApiError> =>
  capabilities.includes("image_editing")
    ? Effect.void
    : Effect.fail(
        apiError("unsupported_parameter", `The model '${id}' makes pictures, but edits none.`, {
          param: "model",
        }),
      )

interface Kind<Body extends ImageBody> {
  readonly family: EventFamily
  readonly read: (body: Body) => Effect.Effect<Asked, ApiError>
}

const planner = (deps: ImageEndpointDeps) => {
  const { catalogue, clock } = deps
  const guard = makeGuard(deps)
  return <Body extends ImageBody>(
    call: Call<Body>,
    { family, read }: Kind<Body>,
  ): Effect.Effect<Plan, ApiError> =>
    Effect.gen(function* () {
      const { body, context } = call
      const entry = yield* catalogue.require("image", body.model)
      const asked = yield* read(body)
      const loaded = yield* catalogue.open("image", entry.id)
      if (family === "image_edit") yield* refuseEdits(loaded, entry)
      const adapter = yield* adapterOf(body, loaded.adapters)
      // before the model looks at anything, also for a dry run
      yield* guard.prompt(body.prompt, context)
      const request = {
        ...withDefaults(asked.request, loaded.imageDefaults),
        ...(adapter && { adapter }),
      }
      let bound: Plan["bound"] = {}
      const events = yield* guard
        .picture(context, (held) =>
          Effect.map(loaded.task.plan(request, held), (planned) => {
            bound = { [entry.id]: planned.bound }
            return planned.run
          }),
        )
        .pipe(Effect.mapError((error) => namedAsSent(body as EditBody, error)))
      const run = Effect.suspend(() => {
        const created = Math.floor(clock.nowMs() / 1000)
        const heading: Heading = { ...asked, family, created, model: entry.id, request }
        const followed = logged(deps, call, entry.id, events)
        return body.stream === true
          ? Effect.succeed(streamed(call, heading, entry, followed))
          : whole(call, heading, entry, followed)
      })
      return { bound, run }
    })
}

const shared = {
  method: "POST",
  access: "key",
  maxBodyBytes: 50 * megabyte,
  reply: ImagesReply as Schema.Top,
  creates: true,
  batchable: true,
} as const

export const makeImageEndpoints = (deps: ImageEndpointDeps) => {
  const plan = planner(deps)
  return [
    defineEndpoint<GenerationBody>({
      ...shared,
      id: "images.generations",
      summary: "A picture from a text, whole or with previews as a stream.",
      path: "/v1/images/generations",
      body: GenerationBody,
      refuses: refusalOf("generation"),
      event: GenerationEvent,
      plan: (call) => plan(call, { family: "image_generation", read: readGeneration }),
    }),
    defineEndpoint<EditBody>({
      ...shared,
      id: "images.edits",
      summary: "A picture changed as a text says, or made from up to five.",
      path: "/v1/images/edits",
      body: EditBody,
      form: EditForm,
      readForm: readEditForm,
      refuses: refusalOf("edit"),
      event: EditEvent,
      plan: (call) => plan(call, { family: "image_edit", read: readEdit }),
    }),
  ]
}
