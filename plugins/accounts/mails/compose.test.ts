import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { changedMail, registeredMail, tokenMail } from "./compose.ts"
import { chooseLocale, locales } from "./locale.ts"
import { escapeHtml, renderMail } from "./render.ts"

const deployment = {
  name: "test",
  dataDir: "/",
  modelsDir: "/",
  baseUrl: "https://rakit.example",
  mode: "server",
} as const
const to = (locale: "en" | "id") => ({ email: "ada@example.com", locale })

describe.each(locales)("mails in %s", (locale) => {
  const mails = {
    verify: tokenMail(to(locale), deployment, "verify", "t0ken"),
    reset: tokenMail(to(locale), deployment, "reset", "t0ken"),
    registered: registeredMail(to(locale), deployment),
    changed: changedMail(to(locale), deployment),
  }

  it("carry their token in the fragment of a link, in text and HTML", () => {
    for (const purpose of ["verify", "reset"] as const) {
      const url = `https://rakit.example/dashboard#${purpose}=t0ken`
      expect(mails[purpose].text).toContain(`\n${url}\n`)
      expect(mails[purpose].html).toContain(`href="${url}"`)
    }
    expect(mails.registered.text + mails.changed.text).not.toContain("=")
    expect(mails.registered.html).toContain('href="https://rakit.example/dashboard#sign-in"')
  })

  it("are whole, and say the same in both forms", () => {
    for (const mail of Object.values(mails)) {
      expect(mail.to).toBe("ada@example.com")
      expect(mail.subject).toMatch(/^[^\r\n]{10,60}$/)
      expect(mail.html).toContain(`<html lang="${locale}">`)
      const words = (text: string) =>
        text
          .replaceAll(":\n", "\n")
          .split(/\s+/)
          .filter((word) => word.length > 3)
      const plain = mail.html.replace(/<[^>]+>/g, " ").replaceAll("&#39;", "'")
      for (const word of words(mail.text)) expect(plain).toContain(word)
      expect(mail.html).not.toMatch(/<script|<img|undefined|null|\bsrc=/)
    }
  })
})

it("are written in the account's language", () => {
  expect(tokenMail(to("en"), deployment, "verify", "t").subject).toBe("Confirm your e-mail address")
  expect(tokenMail(to("id"), deployment, "verify", "t").subject).toBe(
    "Konfirmasi alamat email Anda",
  )
})

it("nothing gets out of its place in HTML", () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom("<", ">", '"', "'", "&", "a", " ", "/", ":"),
        maxLength: 30,
      }),
      (text) => {
        const content = {
          subject: text,
          greeting: text,
          paragraphs: [text],
          action: { label: text, url: `https://x/${text}` },
          notes: [`see https://x/${text}`],
        }
        const { html } = renderMail("a@b.c", content, "en")
        const own = renderMail(
          "a@b.c",
          {
            subject: "",
            greeting: "",
            paragraphs: [""],
            action: { label: "", url: "https://x/" },
            notes: ["see https://x/"],
          },
          "en",
        ).html
        const tags = (page: string) => page.replace(/"[^"]*"/g, '""').match(/<[^>]*>/g)
        const plain = (found: readonly string[] | null) =>
          found?.filter((tag) => !/^<\/?a\b/.test(tag))
        expect(plain(tags(html))).toEqual(plain(tags(own)))
        expect(escapeHtml(text)).not.toMatch(/[<>"']/)
      },
    ),
  )
})

describe("the language", () => {
  it.each([
    [undefined, "en"],
    ["", "en"],
    ["id", "id"],
    ["id-ID,id;q=0.9,en-US;q=0.8,en;q=0.7", "id"],
    ["in-ID", "id"],
    ["en-GB,id;q=0.9", "en"],
    ["en;q=0.3, ID;q=0.5", "id"],
    ["id;q=0, en", "en"],
    ["de-DE,de", "en"],
    ["*", "en"],
    [";;;,,q=1", "en"],
  ] as const)("of %j is %s", (languages, locale) =>
    expect(chooseLocale(languages, "en")).toBe(locale),
  )

  it("is always one of ours, and never slow", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) =>
        locales.includes(chooseLocale(text, "id")),
      ),
    )
    const startMs = performance.now()
    chooseLocale("id;q=".repeat(100_000), "en")
    chooseLocale(",".repeat(1_000_000), "en")
    expect(performance.now() - startMs).toBeLessThan(100)
  })
})
