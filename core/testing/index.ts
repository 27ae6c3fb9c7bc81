/** A contract suite and a fake per port: `rakit/testing`. Suites are imported by their own path, as they need vitest. */
export * from "./billing.ts"
export * from "./clock.ts"
export * from "./idempotency.ts"
export * from "./identity.ts"
export * from "./ids.ts"
export * from "./log.ts"
export * from "./metrics.ts"
export * from "./workers.ts"
