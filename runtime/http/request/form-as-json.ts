import type { IncomingMessage } from "node:http"
import { Effect, Stream } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { BodyPart, Endpoint, MultipartBody } from "../../../core/ports/endpoint.ts"
import type { Reservation } from "./body-budget.ts"
import { digestForm } from "./multipart-digest.ts"

/** A form may stand in for JSON where the endpoint reads one. */
export const isForm = ({ headers }: IncomingMessage): boolean =>
  /^\s*multipart\/form-data\b/i.test(headers["content-type"] ?? "")

/** Files stay in memory, unlike those of endpoints that stream them elsewhere. */
const counted = (
  { parts, contentLength }: MultipartBody,
  reservation: Reservation,
): MultipartBody => {
  let bytes = reservation.bytes()
  const grow = (more: number): Effect.Effect<void, ApiError> =>
    Effect.suspend(() => {
      bytes += more
      return reservation.grow(Math.max(0, bytes - reservation.bytes())) ?? Effect.void
    })
  const count = (part: BodyPart): BodyPart =>
    part.kind === "field"
      ? part
      : { ...part, bytes: Stream.tap(part.bytes, (chunk) => grow(chunk.length)) }
  return { parts: Stream.map(parts, count), contentLength }
}

/** Reads a form into the JSON that it stands for; `hashes`: its digest is wanted. */
export const readFormAsJson = (
  form: MultipartBody,
  read: NonNullable<Endpoint["readForm"]>,
  reservation: Reservation,
  hashes: boolean,
): Effect.Effect<{ readonly body: Json; readonly digest?: string | undefined }, ApiError> => {
  const whole = counted(form, reservation)
  if (!hashes) return Effect.map(read(whole), (body) => ({ body }))
  const { body: hashed, digest } = digestForm(whole)
  return Effect.map(read(hashed), (body) => ({ body, digest: digest() }))
}
