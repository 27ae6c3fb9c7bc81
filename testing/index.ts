/**
 * `rakit/testing`, for the tests of a plugin: the contract suites, a fake of each port, `ask` for
 * endpoints, and servers that a plugin talks to.
 * It needs vitest and fast-check. Whole servers and test databases are in `rakit/testing/platform`,
 * a mail server in `rakit/testing/smtp`.
 */
export * from "./api.ts"
export * from "./contracts/billing.ts"
export * from "./contracts/database.ts"
export * from "./contracts/idempotency.ts"
export * from "./contracts/identity.ts"
export * from "./contracts/image-safety.ts"
export * from "./contracts/model.ts"
export * from "./contracts/queue.ts"
export * from "./contracts/storage.ts"
export * from "./contracts/webhook.ts"
export * from "./fakes.ts"
export * from "./files-server.ts"
export * from "./property.ts"
export * from "./receiver.ts"
