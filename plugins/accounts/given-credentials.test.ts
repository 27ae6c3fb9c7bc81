import { Result, Schema, SchemaIssue } from "effect"
import { expect, it } from "vitest"
import { readGivenCredentials } from "./given-credentials.ts"
import { Settings } from "./settings.ts"

const read = (input: Record<string, string>) =>
  readGivenCredentials(Schema.decodeUnknownSync(Settings)(input))

it("takes an empty text as not set", () => {
  expect(read({ adminEmail: "", adminPassword: "", apiKey: "" })).toEqual({
    email: undefined,
    password: undefined,
    apiKey: undefined,
  })
})

it("takes what is given, the address in lower case", () => {
  const given = {
    adminEmail: "Ada@Example.com",
    adminPassword: "12345678",
    apiKey: "any-form-of-16-chars",
  }
  expect(read(given)).toEqual({
    email: "ada@example.com",
    password: "12345678",
    apiKey: "any-form-of-16-chars",
  })
})

it.each([
  ["RAKIT_ADMIN_EMAIL", { adminEmail: "not-an-address" }, "an e-mail address"],
  ["RAKIT_ADMIN_PASSWORD", { adminPassword: "s3cret!" }, "8 to 200 characters"],
  ["RAKIT_API_KEY", { apiKey: "sk-short" }, "16 to 200 visible ASCII"],
  ["RAKIT_API_KEY", { apiKey: "sk-with a space inside" }, "16 to 200 visible ASCII"],
])("refuses an unusable %s by name and rule, without its value", (variable, input, rule) => {
  const decoded = Schema.decodeUnknownResult(Settings)(input)
  if (Result.isSuccess(decoded)) throw new Error("it was taken")
  const [issue] = SchemaIssue.makeFormatterStandardSchemaV1()(decoded.failure.issue).issues
  expect(issue?.message).toContain(variable)
  expect(issue?.message).toContain(rule)
  expect(issue?.path).toEqual(Object.keys(input))
  for (const value of Object.values(input))
    expect(JSON.stringify(decoded.failure) + issue?.message).not.toContain(value)
})
