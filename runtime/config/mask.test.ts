import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeMask } from "./mask.ts"

const secret = 'hunter2/Pass word"+é'
const { text, line } = makeMask(new Map([["SECRET", secret]]))

describe("the mask", () => {
  it("hides a value however a message writes it", () => {
    for (const form of [
      secret,
      JSON.stringify(secret),
      `https://x/${encodeURIComponent(secret)}?y`,
      encodeURI(secret),
      secret.toLowerCase(),
    ]) {
      expect(text(`No backend '${form}' here`)).toContain("${SECRET}")
      expect(text(form).toLowerCase()).not.toContain("hunter2")
    }
  })

  it("hides the password of a URL, alone and encoded, and leaves host and database", () => {
    const url = "postgres://rakit:p%40ss-word@db.example:5432/main"
    const mask = makeMask(new Map([["DATABASE_URL", url]]))
    expect(mask.text(`a ${url} b p@ss-word c p%40ss-word d db.example:5432/main`)).toBe(
      "a ${DATABASE_URL} b ${DATABASE_URL} c ${DATABASE_URL} d db.example:5432/main",
    )
  })

  it("hides short values between quotation marks only, and leaves ports and switches", () => {
    const mask = makeMask(
      new Map([
        ["A", "on"],
        ["PORT", "8080"],
        ["FLAG", "true"],
      ]),
    )
    expect(mask.text("No backend 'on' on 8080, true")).toBe("No backend '${A}' on 8080, true")
  })

  it("takes the longest of values that overlap, and never masks a mask", () => {
    const mask = makeMask(
      new Map([
        ["ONE", "abcd"],
        ["TWO", "abcdef"],
        ["THREE", "ONE}"],
      ]),
    )
    expect(mask.text("abcdef abcd")).toBe("${TWO} ${ONE}")
  })

  it("leaves common words in the log", () => {
    const mask = makeMask(
      new Map([
        ["LEVEL", "info"],
        ["TOKEN", "a-long-enough-token"],
      ]),
    )
    expect(mask.line('{"level":"info","x":"a-long-enough-token"}')).toBe(
      '{"level":"info","x":"${TOKEN}"}',
    )
  })

  it("nothing of four characters or more gets through, whatever it is", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, unit: "binary" }), fc.string(), (value, around) => {
        fc.pre(!/^\d{1,5}$|^true$|^false$/.test(value) && !"${NAME}".includes(value))
        fc.pre(value.trim() !== "" && !around.includes(value[0] ?? ""))
        const shown = makeMask(new Map([["NAME", value]])).text(`${around} '${value}'.`)
        expect(shown.replaceAll("${NAME}", "").includes(value)).toBe(false)
      }),
    )
  })
})

it("does nothing without variables", () => {
  expect(makeMask(new Map()).text("as it was")).toBe("as it was")
  expect(line("as it was")).toBe("as it was")
})
