import { Effect } from "effect"
import { expect, test } from "vitest"
import { type Caller, defaultLimits } from "../../../core/caller.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"
import type { Identity } from "../../../core/ports/identity.ts"
import { echo } from "../testing/fixture.ts"
import { authenticate } from "./authenticate.ts"

const callerOf = (account: string): Caller => ({
  tenant: { account, mode: "live" },
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
})
const knows = (account: string): Identity => ({
  authenticate: () => Effect.succeed(callerOf(account)),
  resume: () => Effect.succeed(callerOf(account)),
})
const keys = () => knows("by key")
const sessions = () => knows("by session")
const who = (
  access: Endpoint["access"],
  by: Parameters<typeof authenticate>[2],
  header = "Bearer x",
) =>
  Effect.runPromise(
    authenticate({ ...echo, access }, header, by).pipe(
      Effect.map((caller) => caller?.tenant.account),
      Effect.catchTag("ApiError", (error) => Effect.succeed(error.code)),
    ),
  )

test("keys open key endpoints, sessions open those of the dashboard, and neither the other's", async () => {
  expect(await who("key", { identity: keys, sessions })).toBe("by key")
  expect(await who("session", { identity: keys, sessions })).toBe("by session")
  expect(await who("admin", { identity: keys, sessions })).toBe("by session")
})

test("without anybody who knows sessions, nobody gets in", async () => {
  expect(await who("session", { identity: keys })).toBe("authentication_error")
  expect(await who("admin", { identity: keys, sessions: () => undefined })).toBe(
    "authentication_error",
  )
})

test("on public endpoints the header is ignored, whatever it says", async () => {
  expect(await who("public", { identity: keys }, "nonsense")).toBeUndefined()
})

test("who sent nothing, or nothing of use, learns what this endpoint wants", async () => {
  const messageOf = (access: Endpoint["access"], header?: string) =>
    Effect.runPromise(
      authenticate({ ...echo, access }, header, { identity: keys, sessions }).pipe(
        Effect.as(""),
        Effect.catchTag("ApiError", (error) => Effect.succeed(error.message)),
      ),
    )
  for (const header of [undefined, "Basic x"]) {
    expect(await messageOf("key", header)).toContain("key")
    for (const access of ["session", "admin"] as const) {
      expect(await messageOf(access, header)).toContain("<token>")
      expect(await messageOf(access, header)).not.toContain("key")
    }
  }
})
