import { Redacted, Result, Schema } from "effect"
import { expect, it } from "vitest"
import { defaultLimits } from "../../core/index.ts"
import { amountOf, limitsOf, Settings } from "./settings.ts"

const decode = (input: unknown) => Schema.decodeUnknownSync(Settings)(input)

it("has the limits and the credit of the contract by default", () => {
  const settings = decode({})
  expect(limitsOf(settings)).toEqual(defaultLimits)
  expect(amountOf(settings.freeCreditIdr)).toBe(50_000_000_000n)
})

it("takes a part of the limits", () => {
  expect(limitsOf(decode({ defaultLimits: { rpm: 5, monthlyCapIdr: 0.5, bodyMb: 8 } }))).toEqual({
    ...defaultLimits,
    rpm: 5,
    monthlyCapMicros: 500_000n,
    bodyMb: 8,
  })
})

it("lets test keys use every model, and writes mails in English, by default", () => {
  expect(decode({})).toMatchObject({ testKeys: { models: "all", rpd: 10_000 }, locale: "en" })
  expect(decode({ testKeys: { models: ["svc-lyt"] }, locale: "id" })).toMatchObject({
    testKeys: { models: ["svc-lyt"], rpd: 10_000 },
    locale: "id",
  })
  for (const bad of [
    { locale: "fr" },
    { testKeys: { models: "svc-lyt" } },
    { testKeys: { rpd: 0 } },
  ])
    expect(() => decode(bad)).toThrow()
})

it("refuses amounts below zero, with too many decimals, and limits that are no counts", () => {
  for (const bad of [
    { freeCreditIdr: -1 },
    { freeCreditIdr: 1e-7 },
    { freeCreditIdr: Number.NaN },
    { defaultLimits: { rpm: 0 } },
    { defaultLimits: { rpd: 1.5 } },
    { defaultLimits: { bodyMb: 0 } },
    { defaultLimits: { bodyMb: 1.5 } },
    { defaultLimits: { bodyMb: 51 } },
  ])
    expect(Result.isFailure(Schema.decodeUnknownResult(Settings)(bad)), JSON.stringify(bad)).toBe(
      true,
    )
})

it("never prints its secrets", () => {
  const settings = decode({ adminPassword: "hunter2-hunter2", apiKey: "sk-0123456789abcdef" })
  expect(Redacted.value(settings.adminPassword)).toBe("hunter2-hunter2")
  for (const printed of [
    JSON.stringify(settings),
    String(settings.apiKey),
    Object.values(settings).join(),
  ])
    expect(printed).not.toMatch(/hunter2|sk-0123/)
})
