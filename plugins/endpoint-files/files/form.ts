import { Effect, Stream } from "effect"
import { type ApiError, apiError, type BodyPart, type MultipartBody } from "../../../core/index.ts"

export type FilePart = Extract<BodyPart, { readonly kind: "file" }>
export type Fields = ReadonlyMap<string, string>

const wrong = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${why}`, { param })

/** Makes a field name of the client's safe to show in an error. */
const shown = (name: string): string => name.replace(/[^\w.[\]-]/g, "?").slice(0, 100) || "file"

/**
 * Reads a form with exactly one file, under the name `param`, before, between or after its fields.
 * `take` must read the file's bytes.
 */
export const readForm = <A, E, R>(
  { parts }: MultipartBody,
  param: string,
  take: (part: FilePart, before: Fields) => Effect.Effect<A, E, R>,
) =>
  Effect.gen(function* () {
    const fields = new Map<string, string>()
    const taken: A[] = []
    yield* Stream.runForEach(parts, (part): Effect.Effect<void, E | ApiError, R> => {
      if (part.kind === "file") {
        if (part.name !== param)
          return Effect.fail(wrong(shown(part.name), `the file must come in the field ${param}`))
        if (taken.length > 0)
          return Effect.fail(wrong(param, "only one file may come with a request"))
        return Effect.map(take(part, fields), (it) => void taken.push(it))
      }
      if (part.name === param) return Effect.fail(wrong(param, "must be a file, with a filename"))
      if (fields.has(part.name)) return Effect.fail(wrong(shown(part.name), "came twice"))
      return Effect.sync(() => void fields.set(part.name, part.value))
    })
    const [file] = taken
    if (file === undefined) return yield* wrong(param, "is missing")
    return { fields: fields as Fields, file }
  })
