import { expect, it } from "vitest"
import { readyText } from "./banner.ts"

const facts = {
  name: "test",
  version: "1.0.0",
  baseUrl: "http://localhost:1",
  credentialsFile: "/data/credentials.json",
  account: { email: "a@b.c", password: "made-password", apiKey: "svc_live_made" },
  chatModel: "svc-lyt",
  hasDashboard: true,
  wasGiven: () => false,
}

const linesOf = (text: string) => text.split("\n").filter((line) => line !== "")

it("says in five lines what the first boot made, and a call to copy", () => {
  expect(linesOf(readyText(facts))).toEqual([
    "  API        http://localhost:1/v1",
    "  Dashboard  http://localhost:1/dashboard",
    "  Sign in    a@b.c, password made-password",
    "  API key    svc_live_made  (this is shown once; kept in /data/credentials.json)",
    expect.stringMatching(
      /^ {2}Try {8}curl http:\/\/localhost:1\/v1\/chat\/completions .*Bearer svc_live_made".*"model":"svc-lyt"/,
    ),
  ])
})

it("does not show what the operator set", () => {
  const text = readyText({ ...facts, wasGiven: () => true })
  expect(text).not.toContain("made-password")
  expect(text).not.toContain("svc_live_made")
  expect(text).toContain("$RAKIT_API_KEY")
})

it("names the file on later boots", () => {
  const text = readyText({ ...facts, account: undefined })
  expect(text).toContain("password are in /data/credentials.json")
  expect(text).toContain("Bearer $RAKIT_API_KEY")
})

it("leaves out what the deployment does not have", () => {
  const bare = { credentialsFile: undefined, account: undefined, chatModel: undefined }
  expect(linesOf(readyText({ ...facts, ...bare, hasDashboard: false }))).toEqual([
    "  API        http://localhost:1/v1",
  ])
})
