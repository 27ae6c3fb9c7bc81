import { expect, it } from "vitest"
import { startedText } from "./banner.ts"

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

it("shows what the first boot made, and three examples", () => {
  const text = startedText(facts)
  for (const part of [
    "a@b.c",
    "made-password",
    "/data/credentials.json",
    'Authorization: Bearer svc_live_made"',
    'apiKey: "svc_live_made"',
    "http://localhost:1/dashboard",
  ])
    expect(text).toContain(part)
})

it("does not show what the operator set", () => {
  const text = startedText({ ...facts, wasGiven: () => true })
  expect(text).not.toContain("made-password")
  expect(text).not.toContain("svc_live_made")
  expect(text).toContain("$RAKIT_API_KEY")
})

it("shows no account on later boots", () => {
  const text = startedText({ ...facts, account: undefined })
  expect(text).not.toContain("e-mail")
  expect(text).toContain("process.env.RAKIT_API_KEY")
  expect(text).toContain("is in /data/credentials.json")
})
