import { type ApiError, PortError } from "../../../core/index.ts"
import { IngestFailure } from "../reading/document-reader.ts"

/** Runs of a file that may break off without a known reason. */
export const maxFailures = 5

/** What is over by itself: the file waits for it, up to its deadline. */
const passing: ReadonlySet<ApiError["code"]> = new Set([
  "backend_busy",
  "backend_timeout",
  "concurrency_exceeded",
  "database_unavailable",
  "model_loading",
  "rate_limit_error",
  "server_busy",
  "server_starting",
  "storage_full",
  "storage_unavailable",
])

/** What the key, or its account, is refused for; trying again does not help. */
const refusals: ReadonlySet<ApiError["code"]> = new Set([
  "account_suspended",
  "authentication_error",
  "email_not_verified",
  "permission_denied",
])

/** A reason to try again that says nothing against the file. */
export const isPassing = (error: ApiError | PortError): boolean =>
  error._tag === "ApiError"
    ? passing.has(error.code)
    : error.why === "unavailable" || error.why === "full" || error.why === "busy"

/** What the customer reads of an error that ends ingest; undefined where another try may help. */
export const refusalOf = (error: ApiError): IngestFailure | undefined =>
  refusals.has(error.code)
    ? new IngestFailure({
        code: "not_permitted",
        message: `The API key that uploaded this file may no longer pay for it: ${error.message}`,
      })
    : undefined

export const unknownFailure = (): IngestFailure =>
  new IngestFailure({
    code: "internal",
    message: `Processing broke off ${maxFailures} times for a reason on our side. Nothing was charged. Upload the file again later.`,
  })

export const tooSlow = (hours: number): IngestFailure =>
  new IngestFailure({
    code: "too_slow",
    message: `The file could not be processed within ${hours} hours of its upload. Nothing was charged. Upload it again, or in parts.`,
  })

/** Has the queue run the job again, after a while. */
export const tryAgain = (message: string, cause?: unknown): PortError =>
  new PortError({ port: "retrieval", message, cause })
