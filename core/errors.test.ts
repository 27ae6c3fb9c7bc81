import { describe, expect, it } from "vitest"
import {
  apiError,
  type ErrorCode,
  errorBody,
  errorHeaders,
  errorRegistry,
  isApiError,
  statusOf,
} from "./errors.ts"

const codes = Object.keys(errorRegistry) as ErrorCode[]

describe("the registry", () => {
  it("has every code of the contract with its status", () => {
    const contract = {
      model_not_found: 400,
      invalid_request_error: 400,
      invalid_json: 400,
      content_policy_violation: 400,
      context_length_exceeded: 400,
      authentication_error: 401,
      insufficient_quota: 402,
      email_not_verified: 403,
      account_suspended: 403,
      read_only_session: 403,
      not_found: 404,
      conflict: 409,
      payload_too_large: 413,
      storage_quota_exceeded: 413,
      text_too_long: 422,
      schema_not_satisfied: 422,
      instruction_with_image: 422,
      rate_limit_error: 429,
      concurrency_exceeded: 429,
      backend_busy: 429,
      backend_error: 500,
      server_busy: 503,
      database_unavailable: 503,
      storage_unavailable: 503,
      model_loading: 503,
      backend_timeout: 504,
      storage_full: 507,
    } as const
    for (const [code, status] of Object.entries(contract))
      expect([code, statusOf(apiError(code as ErrorCode))]).toEqual([code, status])
  })

  it("does not let a table by code forget one, nor know another", () => {
    // @ts-expect-error all other codes are missing
    const short: Record<ErrorCode, true> = { not_found: true }
    // @ts-expect-error no reply has this code
    const unknown: ErrorCode = "more_errors"
    expect([Object.keys(short).length < codes.length, codes.includes(unknown)]).toEqual([
      true,
      false,
    ])
  })

  it("has a family that fits each status, and a sentence", () => {
    const families: Record<number, string> = {
      401: "authentication_error",
      402: "insufficient_quota",
      403: "permission_error",
      404: "not_found_error",
      429: "rate_limit_error",
      431: "invalid_request_error",
    }
    for (const code of codes) {
      const { status, type, about } = errorRegistry[code]
      expect([code, type]).toEqual([
        code,
        families[status] ?? (status >= 500 ? "server_error" : "invalid_request_error"),
      ])
      expect(about).toMatch(/^[A-Z`].*\.$/)
    }
  })
})

describe("an error", () => {
  it("has the one envelope, with null for no param", () => {
    expect(errorBody(apiError("not_found"))).toEqual({
      message: errorRegistry.not_found.about,
      type: "not_found_error",
      code: "not_found",
      param: null,
    })
    expect(
      errorBody(apiError("invalid_request_error", "Too hot.", { param: "temperature" })),
    ).toMatchObject({ message: "Too hot.", param: "temperature" })
  })

  it("says when to try again on every 429, 503 and 507, in whole seconds and in ms, and on no other", () => {
    for (const code of codes)
      expect([code, "retry-after" in errorHeaders(apiError(code))]).toEqual([
        code,
        [429, 503, 507].includes(statusOf(apiError(code))),
      ])
    expect(
      errorHeaders(
        apiError("backend_busy", undefined, { retryAfterMs: 1500, headers: { "x-a": "b" } }),
      ),
    ).toEqual({ "x-a": "b", "retry-after": "2", "retry-after-ms": "1500" })
    expect(errorHeaders(apiError("backend_busy", undefined, { retryAfterMs: 0 }))).toEqual({
      "retry-after": "1",
      "retry-after-ms": "1",
    })
  })

  it("says so on a 409 that passes by itself", () => {
    expect(errorHeaders(apiError("conflict", undefined, { retryAfterMs: 12_001 }))).toEqual({
      "retry-after": "13",
      "retry-after-ms": "12001",
    })
    // another code does not become retryable by it
    expect(errorHeaders(apiError("not_found", undefined, { retryAfterMs: 1 }))).toEqual({})
  })

  it("is known by its tag, also when it comes from another copy of the kernel", () => {
    expect(
      [apiError("not_found"), { _tag: "ApiError" }, new Error("x"), null, "ApiError"].map(
        isApiError,
      ),
    ).toEqual([true, true, false, false, false])
  })
})
