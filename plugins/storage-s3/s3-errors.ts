import { PortError } from "../../core/errors.ts"
import { BlobMissing, StorageFull } from "../../core/ports/storage.ts"

interface Cause {
  readonly name?: string
  readonly code?: string
  readonly message?: string
  readonly cause?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

const causeOf = (cause: unknown): Cause =>
  typeof cause === "object" && cause !== null ? (cause as Cause) : {}

export const statusOf = (cause: unknown): number | undefined =>
  causeOf(cause).$metadata?.httpStatusCode

/** The store's own code (`NoSuchKey`), or that of the network or of TLS (`ECONNREFUSED`). */
export const codeOf = (cause: unknown): string => {
  const { name, code, cause: inner } = causeOf(cause)
  if (code !== undefined) return code
  return inner !== undefined && codeOf(inner) !== "" ? codeOf(inner) : (name ?? "")
}

const full = new Set(["InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "StorageFull"])
export const isFull = (cause: unknown) => full.has(codeOf(cause)) || statusOf(cause) === 507

const expired = "its certificate has expired. Renew the certificate of the store"
const untrusted =
  "its certificate is not trusted. Use one of a known authority, or name your own in NODE_EXTRA_CA_CERTS"
const wrongRegion = "it serves another region. Correct `region`"
const nothingThere = "nothing answers there. Correct `endpoint`, or start the store"
const unknownHost = "its host is not known. Correct `endpoint`"

/** Causes that people can do something about, by code. */
const known: Readonly<Record<string, string>> = {
  ENOTFOUND: unknownHost,
  EAI_AGAIN: unknownHost,
  ECONNREFUSED: nothingThere,
  EHOSTUNREACH: nothingThere,
  ENETUNREACH: nothingThere,
  TimeoutError: "it does not answer in time",
  ETIMEDOUT: "it does not answer in time",
  EPROTO: "it does not speak TLS. Correct http or https in `endpoint`",
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: "its certificate is not valid yet. Compare the clocks of both machines",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host. Correct `endpoint`",
  NoSuchBucket: "there is no such bucket. Make it, or correct `bucket` or `endpoint`",
  InvalidAccessKeyId: "the access key is not known. Correct `accessKeyId`",
  // versitygw's
  XAdminUserNotFound: "the access key is not known. Correct `accessKeyId`",
  SignatureDoesNotMatch:
    "the signature is wrong. Correct `secretAccessKey`, and `region` where the store minds it",
  AccessDenied:
    "the key may not do this. Allow it to list the bucket, and to get, put and delete its objects",
  CredentialsProviderError:
    "this machine has no credentials. Set `accessKeyId` and `secretAccessKey`",
  AuthorizationHeaderMalformed: wrongRegion,
  IncorrectEndpoint: wrongRegion,
  PermanentRedirect: wrongRegion,
  RequestTimeTooSkewed: "the clocks of this machine and of the store differ too much. Correct them",
  RequestExpired: "the clocks of this machine and of the store differ too much. Correct them",
  InvalidStorageClass: "it has no such storage class. Correct `storageClass`",
  SlowDown: "it asks for fewer requests",
}

const bySchema = (cause: unknown): string | undefined =>
  statusOf(cause) === 301 || statusOf(cause) === 307 ? wrongRegion : undefined

/** What is wrong with the store, and what to do, in one sentence. */
export const explain = (store: string, cause: unknown): string => {
  const { message } = causeOf(cause)
  const code = codeOf(cause)
  const status = statusOf(cause)
  const reason = known[code] ?? bySchema(cause) ?? (message?.slice(0, 200) || "no reason was given")
  const named = [code, status].filter(Boolean).join(", ")
  return `${store}: ${reason} (${named || "unknown"}).`
}

const unreachable = new Set(["ECONNRESET", "EPIPE", "ServiceUnavailable", "InternalError"])

/**
 * The store is away, or refuses this server as a whole: another try later may work, once somebody
 * has mended it. Clients get a 503, and lines of batches wait.
 */
const isAway = (cause: unknown): boolean =>
  known[codeOf(cause)] !== undefined ||
  unreachable.has(codeOf(cause)) ||
  [301, 307, 401, 403, 429, 500, 502, 503, 504].includes(statusOf(cause) ?? 0)

export const isMissing = (cause: unknown): boolean =>
  ["NoSuchKey", "NotFound"].includes(codeOf(cause))

/** The client's errors hold the request, with its signature; the log must not. */
const withoutRequest = (cause: unknown): unknown =>
  cause instanceof Error && "$metadata" in cause
    ? { code: codeOf(cause), message: cause.message, metadata: cause.$metadata }
    : cause

/** Maps the store's errors to those of the port. `store` says which one it is. */
export const errorsOf = (store: string) => {
  const portError = (key: string, cause: unknown): PortError =>
    new PortError({
      port: "storage",
      message: `"${key}": ${explain(store, cause)}`,
      cause: withoutRequest(cause),
      ...(isAway(cause) && { why: "unavailable" as const }),
    })
  return {
    writing:
      (key: string) =>
      (cause: unknown): StorageFull | PortError =>
        isFull(cause) ? new StorageFull({ key }) : portError(key, cause),
    reading:
      (key: string) =>
      (cause: unknown): BlobMissing | PortError =>
        isMissing(cause) ? new BlobMissing({ key }) : portError(key, cause),
    asking:
      (key: string) =>
      (cause: unknown): PortError =>
        portError(key, cause),
  }
}
export type StoreErrors = ReturnType<typeof errorsOf>

export const badKey = (key: string): PortError =>
  new PortError({ port: "storage", message: `${JSON.stringify(key.slice(0, 80))} is no blob key.` })
