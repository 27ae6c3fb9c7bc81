import { Data } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"

/**
 * Why an upstream did not serve a request.
 * unreachable: no connection. slow: no answer in time. busy: 429. unavailable: 5xx.
 * unauthorized: 401, 403. misplaced: a redirect, or no such route or model. refused: the request
 * itself is wrong. garbled: an answer that keeps no protocol. mismatch: one without the form that
 * was asked for. cut: it ended in the middle.
 */
export type FailureKind =
  | "unreachable"
  | "slow"
  | "busy"
  | "unavailable"
  | "unauthorized"
  | "misplaced"
  | "refused"
  | "garbled"
  | "mismatch"
  | "cut"

export class UpstreamFailure extends Data.TaggedError("UpstreamFailure")<{
  readonly kind: FailureKind
  /** For the operator. */
  readonly message: string
  readonly retryAfterMs?: number | undefined
  /** What the client sees, where that is more than that it failed. */
  readonly refusal?: ApiError
}> {}

export const failure = (
  kind: FailureKind,
  message: string,
  more: Partial<Pick<UpstreamFailure, "retryAfterMs" | "refusal">> = {},
): UpstreamFailure => new UpstreamFailure({ kind, message, ...more })

/** Whether another attempt may serve the request, and whether it speaks against the upstream. */
export const verdicts: Readonly<
  Record<FailureKind, { readonly retry: boolean; readonly counts: boolean }>
> = {
  unreachable: { retry: true, counts: true },
  slow: { retry: true, counts: true },
  busy: { retry: true, counts: false },
  unavailable: { retry: true, counts: true },
  unauthorized: { retry: true, counts: true },
  misplaced: { retry: true, counts: true },
  refused: { retry: false, counts: false },
  garbled: { retry: true, counts: true },
  mismatch: { retry: true, counts: false },
  cut: { retry: true, counts: true },
}

/** What the client sees; the log has the upstream's own words. */
export const asApiError = ({ kind, refusal, retryAfterMs }: UpstreamFailure): ApiError => {
  if (refusal) return refusal
  if (kind === "slow") return apiError("backend_timeout")
  if (kind === "busy")
    return apiError("backend_busy", undefined, {
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    })
  return apiError("backend_error")
}

const codes: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens at the address: start the server, or correct url",
  ENOTFOUND: "there is no such host: correct url",
  EAI_AGAIN: "the name server does not answer",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to the network",
  UND_ERR_CONNECT_TIMEOUT: "no connection in time",
  CERT_HAS_EXPIRED: "its certificate has expired: renew it",
  CERT_NOT_YET_VALID: "its certificate is not valid yet: check both clocks",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is signed by itself: name its authority as caFile",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate's authority is unknown: name it as caFile",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate's authority is unknown: name it as caFile",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate's authority is unknown: name it as caFile",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is of another host: correct url",
  UND_ERR_HEADERS_OVERFLOW: "its header is too large",
  HPE_HEADER_OVERFLOW: "its header is too large",
}

/** The failure of a connection; `begun`: an answer had begun. */
export const connectionFailure = (cause: unknown, begun = false): UpstreamFailure => {
  if (cause instanceof UpstreamFailure) return cause
  const { code, name } = (cause ?? {}) as NodeJS.ErrnoException
  const nested = (cause as { readonly errors?: readonly NodeJS.ErrnoException[] }).errors?.[0]?.code
  const known = code ?? nested ?? name ?? "unknown"
  if (known === "UND_ERR_HEADERS_TIMEOUT" || known === "UND_ERR_BODY_TIMEOUT")
    return failure("slow", "it sent nothing in time")
  if (/^HPE_|HEADERS_OVERFLOW/.test(known))
    return failure("garbled", codes[known] ?? `its answer is not HTTP (${known})`)
  if (/^Z_/.test(known)) return failure("garbled", "its compressed body is broken")
  const text = codes[known] ?? (begun ? "the connection was cut" : "the connection failed")
  return failure(begun ? "cut" : "unreachable", `${text} (${known})`)
}
