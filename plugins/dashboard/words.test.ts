import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { en } = await webModule("words/en.js")
const { id } = await webModule("words/id.js")
const { makeLanguage, translate } = await webModule("language.js")

const web = join(import.meta.dirname, "web")
const sources = readdirSync(web, { recursive: true, encoding: "utf8" })
  .filter((name) => /^(views\/|parts\/)?[\w-]+\.js$/.test(name))
  .map((name) => readFileSync(join(web, name), "utf8"))
const blanks = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort()

/** The keys in the sources, and the prefixes of computed ones. */
const asked = sources.flatMap((text) =>
  [...text.matchAll(/\bt\(\s*"([^"]+)"/g)].map((match) => match[1]!),
)
const begun = sources.flatMap((text) =>
  [...text.matchAll(/\bt\(\s*`([^`$]+)\$/g)].map((match) => match[1]!),
)
const chosen = sources.flatMap((text) =>
  [...text.matchAll(/"([a-z]+(?:\.[a-zA-Z]+)+)"/g)].map((match) => match[1]!),
)

describe("the words", () => {
  it("are the same in both languages, with the same blanks", () => {
    expect(Object.keys(id)).toEqual(Object.keys(en))
    for (const key of Object.keys(en))
      expect([key, blanks(id[key])]).toEqual([key, blanks(en[key])])
  })

  it("are there for all that the views ask", () => {
    expect(asked.length).toBeGreaterThan(100)
    expect(asked.filter((key) => !(key in en))).toEqual([])
    for (const beginning of begun)
      expect(
        Object.keys(en).some((key) => key.startsWith(beginning)),
        beginning,
      ).toBe(true)
  })

  it("are all used", () => {
    const used = new Set([...asked, ...chosen])
    expect(
      Object.keys(en).filter(
        (key) => !used.has(key) && !begun.some((beginning) => key.startsWith(beginning)),
      ),
    ).toEqual([])
  })
})

describe("the language", () => {
  const persisted = (kept?: unknown) => {
    const state = { kept }
    return {
      state,
      read: () => state.kept,
      write: (value: unknown) => void Object.assign(state, { kept: value }),
    }
  }

  it.each([
    [["id-ID", "en"], undefined, "id"],
    [["de-DE", "id"], undefined, "id"],
    [["fr"], undefined, "en"],
    [[], undefined, "en"],
    [["id"], "en", "en"],
    [["id"], "xx", "id"],
  ])("of %j with %j kept is %s", (preferred, kept, language) => {
    expect(makeLanguage({ persisted: persisted(kept), preferred }).get()).toBe(language)
  })

  it("is remembered", () => {
    const storage = persisted()
    makeLanguage({ persisted: storage, preferred: ["en"] }).choose("id")
    expect(makeLanguage({ persisted: storage, preferred: ["en"] }).get()).toBe("id")
  })

  it("fills blanks with text as it is", () => {
    expect(translate("en", "key.edit", { name: "$& <b>" })).toBe("Edit $& <b>")
    expect(translate("id", "key.edit", {})).toBe("Ubah ")
  })
})
