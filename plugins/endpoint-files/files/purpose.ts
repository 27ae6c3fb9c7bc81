import { Effect, Schema } from "effect"
import { type ApiError, apiError, type FilePurpose, type FileStatus } from "../../../core/index.ts"

export type UploadPurpose = Extract<FilePurpose, "batch_input" | "knowledge">

const aliases: Readonly<Record<string, FilePurpose>> = {
  batch: "batch_input",
  batch_input: "batch_input",
  knowledge: "knowledge",
  batch_output: "batch_output",
  batch_error: "batch_error",
}

const refuse = (why: string) =>
  Effect.fail(apiError("invalid_request_error", `purpose: ${why}`, { param: "purpose" }))
const known = (purpose: string): FilePurpose | undefined =>
  Object.hasOwn(aliases, purpose) ? aliases[purpose] : undefined

/** Reads the purpose of a file that a customer uploads. */
export const readUploadPurpose = (given: string): Effect.Effect<UploadPurpose, ApiError> => {
  const purpose = known(given)
  if (purpose === "batch_input" || purpose === "knowledge") return Effect.succeed(purpose)
  return refuse(
    purpose === undefined
      ? "must be batch_input (or batch) or knowledge"
      : `files of the purpose ${purpose} are made by batches, and can't be uploaded`,
  )
}

/**
 * The status of a file that was just uploaded. Clients that say `batch`, as OpenAI does, may wait
 * until it is `processed`; a batch's input needs no processing.
 */
export const statusOnUpload = (givenPurpose: string): FileStatus =>
  givenPurpose === "batch" ? "processed" : "uploaded"

export const PurposeFilter = Schema.Literals([
  ...(["batch_input", "batch", "knowledge", "batch_output", "batch_error"] as const),
]).annotate({
  message: "must be batch_input (or batch), knowledge, batch_output or batch_error",
})

export const purposeOf = (given: typeof PurposeFilter.Type): FilePurpose =>
  given === "batch" ? "batch_input" : given
