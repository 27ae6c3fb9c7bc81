import { defaultTiming } from "../context.ts"

export const fastTiming = {
  ...defaultTiming,
  stallMs: 400,
  backoffMs: 5,
  heartbeatMs: 50,
  staleMs: 2_000,
  pollMs: 10,
  reportMs: 0,
}
