import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { definePlugin } from "../../core/plugin.ts"
import { type Token, Tokens } from "../../core/tokens.ts"
import { orderPlugins, withDependencies } from "./dependency-order.ts"
import type { NamedPlugin } from "./load-plugins.ts"
import { withFixes } from "./suggest-plugins.ts"

const plugin = (
  key: string,
  needs: readonly Token<unknown>[],
  provides: readonly Token<unknown>[],
  optional: readonly Token<unknown>[] = [],
): NamedPlugin => ({
  key,
  plugin: definePlugin({
    name: key,
    api: 1,
    about: "",
    settings: Schema.Struct({}),
    needs,
    optional,
    provides,
    create: () => ({}),
  }),
})
const order = (plugins: readonly NamedPlugin[]) => orderPlugins(plugins, new Set(["log"]))
const keys = (plugins: readonly NamedPlugin[]) => plugins.map((p) => p.key)

const database = plugin("database", [Tokens.log], [Tokens.database])
const ledger = plugin("ledger", [Tokens.database], [Tokens.billing])
const accounts = plugin("accounts", [Tokens.billing, Tokens.database], [Tokens.identity])
const chat = plugin("chat", [], [Tokens.endpoints])

describe("orderPlugins", () => {
  it("starts providers first, whatever the order of the file", () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([database, ledger, accounts, chat], { minLength: 4 }),
        (shuffled) => {
          const sorted = keys(order(shuffled).order)
          return (
            sorted.indexOf("database") < sorted.indexOf("ledger") &&
            sorted.indexOf("ledger") < sorted.indexOf("accounts") &&
            sorted.length === 4
          )
        },
      ),
    )
  })

  it("refuses two providers of one port, by name", () => {
    const [problem] = order([database, plugin("other", [], [Tokens.database])]).problems
    expect(problem).toMatchObject({
      path: ["plugins", "other"],
      message: "'database' is provided twice, by 'database' and 'other'",
    })
  })

  it("refuses a missing provider and says what to add", async () => {
    const { problems } = order([ledger])
    expect(problems[0]?.message).toContain("needs 'database'")
    expect(await withFixes(problems)).toMatchObject([
      { fix: "add the plugin database-postgres under plugins." },
    ])
  })

  it("refuses a cycle and shows it", () => {
    const a = plugin("a", [Tokens.billing], [Tokens.database])
    const b = plugin("b", [Tokens.database], [Tokens.billing])
    expect(order([chat, a, b]).problems[0]?.message).toBe(
      "these plugins need each other: a -> b -> a",
    )
  })

  it("starts what is optional first where it is there, and does without it where not", () => {
    const checked = plugin("checked", [], [Tokens.endpoints], [Tokens.ledger])
    const keeper = plugin("keeper", [], [Tokens.ledger])
    expect(keys(order([checked, keeper]).order)).toEqual(["keeper", "checked"])
    expect(keys(order([checked]).order)).toEqual(["checked"])
    const wanted = [Tokens.endpoints as Token<unknown>]
    expect(keys(withDependencies(order([checked, keeper]).order, wanted))).toEqual([
      "keeper",
      "checked",
    ])
  })

  it("refuses a cycle through an optional token too", () => {
    const a = plugin("a", [], [Tokens.database], [Tokens.ledger])
    const b = plugin("b", [Tokens.database], [Tokens.ledger])
    expect(order([a, b]).problems[0]?.message).toBe("these plugins need each other: a -> b -> a")
  })

  it("lets many endpoints stand side by side", () => {
    expect(order([chat, plugin("embed", [], [Tokens.endpoints])]).problems).toEqual([])
  })
})

describe("withDependencies", () => {
  it("keeps what the wanted tokens need, in order", () => {
    const all = order([chat, accounts, ledger, database]).order
    expect(keys(withDependencies(all, [Tokens.billing as Token<unknown>]))).toEqual([
      "database",
      "ledger",
    ])
    expect(keys(withDependencies(all, []))).toEqual([])
  })
})
