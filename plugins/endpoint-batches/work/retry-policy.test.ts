import { expect, it } from "vitest"
import { apiError } from "../../../core/index.ts"
import { retryDelayMs } from "./retry-policy.ts"

const middle = () => 0.5

it("waits for load and starts as long as it takes, longer each time", () => {
  expect(
    [1, 2, 3, 20].map((tries) => retryDelayMs(apiError("backend_busy"), tries, middle)),
  ).toEqual([250, 500, 1_000, 30_000])
  expect(retryDelayMs(apiError("model_loading", "", { retryAfterMs: 5_000 }), 1, middle)).toBe(
    5_000,
  )
  expect(retryDelayMs(apiError("backend_busy"), 10_000, () => 1)).toBe(37_500)
  for (const code of ["database_unavailable", "storage_unavailable", "storage_full"] as const)
    expect(retryDelayMs(apiError(code), 10_000, middle)).toBe(30_000)
})

it("tries what may end a few times, and what stays wrong once", () => {
  for (const code of ["backend_error", "backend_timeout", "internal_error"] as const)
    expect([1, 2, 3, 4].map((tries) => retryDelayMs(apiError(code), tries, middle))).toEqual([
      250,
      500,
      1_000,
      undefined,
    ])
  for (const code of [
    "insufficient_quota",
    "invalid_request_error",
    "account_suspended",
    "context_length_exceeded",
  ] as const)
    expect(retryDelayMs(apiError(code), 1, middle)).toBeUndefined()
})
