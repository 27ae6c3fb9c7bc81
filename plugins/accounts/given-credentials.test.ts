import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { readGivenCredentials } from "./given-credentials.ts"
import { Settings } from "./settings.ts"

const read = (input: Record<string, string>) => readGivenCredentials(Schema.decodeUnknownSync(Settings)(input))

it("takes an empty text as not set", async () => {
  expect(await Effect.runPromise(read({ adminEmail: "", adminPassword: "", apiKey: "" }))).toEqual({ email: undefined, password: undefined, apiKey: undefined })
})

it("takes what is given, the address in lower case", async () => {
  const given = { adminEmail: "Ada@Example.com", adminPassword: "12345678", apiKey: "any-form-of-16-chars" }
  expect(await Effect.runPromise(read(given))).toEqual({ email: "ada@example.com", password: "12345678", apiKey: "any-form-of-16-chars" })
})

it.each([
  ["RAKIT_ADMIN_EMAIL", { adminEmail: "not-an-address" }, "an e-mail address"],
  ["RAKIT_ADMIN_PASSWORD", { adminPassword: "s3cret!" }, "8 to 200 characters"],
  ["RAKIT_API_KEY", { apiKey: "sk-short" }, "16 to 200 visible ASCII"],
  ["RAKIT_API_KEY", { apiKey: "sk-with a space inside" }, "16 to 200 visible ASCII"],
])("refuses an unusable %s by name and rule, without its value", async (variable, input, rule) => {
  const error = await Effect.runPromise(Effect.flip(read(input)))
  expect(error._tag).toBe("PluginError")
  expect(error.message).toContain(variable)
  expect(error.message).toContain(rule)
  for (const value of Object.values(input)) expect(JSON.stringify(error) + error.message).not.toContain(value)
})
