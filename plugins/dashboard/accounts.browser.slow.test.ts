import type { Browser, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"
import { mailedLinks } from "./testing/mailbox.ts"

// a browser and a whole server, on a machine that may be busy
describe.skipIf(!installedChromium)(
  installedChromium ? "accounts, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let window: Awaited<ReturnType<typeof openPage>>
    let page: Page
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })
    beforeEach(async () => {
      window = await openPage(browser)
      page = window.page
    })
    afterEach(async () => {
      const { complaints } = window
      await window.close()
      expect(complaints).toEqual([])
    })

    const open = (place = "") => page.goto(`${platform.url}/dashboard${place}`)
    const fill = async (fields: Record<string, string>) => {
      for (const [label, text] of Object.entries(fields))
        await page.getByLabel(label, { exact: true }).fill(text)
    }
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click()
    const said = (text: string | RegExp) => page.locator("main").getByText(text).first().waitFor()
    const heading = (name: string) =>
      page.getByRole("heading", { level: 1, name, exact: true }).waitFor()
    const signIn = async (email: string, password: string) => {
      await open("#sign-in")
      await fill({ "E-mail": email, Password: password })
      await press("Sign in")
    }
    const address = () => page.evaluate<string>("location.href")
    const ask = (path: string, body: object) =>
      fetch(platform.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }).then((reply) => reply.status)
    const newAccount = async (email: string, password: string) => {
      expect(await ask("/dashboard/signup", { email, password })).toBe(201)
      const [link] = await mailedLinks(platform, email, "verify")
      return link!
    }

    it("from sign-up over the mail to the first look", async () => {
      const email = "ada@example.com"
      await open()
      await heading("Sign in")
      await said("svc-lyt")
      await page.getByRole("link", { name: "Create account" }).click()
      await fill({ "E-mail": email, Password: "short" })
      await press("Create account")
      const field = page.getByLabel("Password", { exact: true })
      await page.locator(".refusal", { hasText: "8 to 200 characters" }).waitFor()
      expect([
        await field.getAttribute("aria-invalid"),
        await page.evaluate("document.activeElement.name"),
      ]).toEqual(["true", "password"])
      const described = (await field.getAttribute("aria-describedby"))!.split(" ").at(-1)!
      expect(await page.locator(`[id="${described}"]`).textContent()).toContain(
        "8 to 200 characters",
      )

      await fill({ Password: "a long password" })
      await press("Create account")
      // the new account is signed in at once
      await heading("Overview")
      expect(await address()).toBe(`${platform.url}/dashboard#overview`)
      await said(/not confirmed yet/)
      const [first] = await mailedLinks(platform, email, "verify")
      await press("Send the mail again")
      await said("Check your mail: a new link is on its way.")
      await said(/You can ask for another one in (1:00|0:5\d)\./)
      const resend = page.getByRole("button", { name: "Send the mail again" })
      expect(await resend.getAttribute("aria-disabled")).toBe("true")
      // mails of the same moment may be in any order
      const second = (await mailedLinks(platform, email, "verify", 2)).find(
        (link) => link !== first,
      )

      // a newer link replaces the one before
      await page.goto(first!)
      await heading("Confirm e-mail")
      await page.locator(".notice.bad").waitFor()
      expect(await address()).toBe(`${platform.url}/dashboard#verify`)
      await page.goto(second!)
      await said(`${email} is confirmed. Your keys work now.`)
      expect(await address()).toBe(`${platform.url}/dashboard#verify`)
      await page.goto("about:blank")
      await page.goto(second!)
      await said(`${email} is already confirmed. Your keys work.`)
      // the token is in no entry of the history either
      await page.goBack()
      await page.goForward()
      expect(await address()).not.toContain(second!.split("=")[1]!)
      await page.getByRole("link", { name: "Overview", exact: true }).first().click()
      await heading("Overview")
      await said("Rp\u00a050,000")
      expect(await page.getByText(/not confirmed yet/).count()).toBe(0)
    })

    it("sign-up with an address that has an account says only that a mail was sent", async () => {
      await newAccount("ann@example.com", "a long password")
      await open("#sign-up")
      await page.getByRole("button", { name: "ID", exact: false }).first().click()
      await fill({ Email: "ann@example.com", "Kata sandi": "short" })
      await press("Buat akun")
      await page.locator(".refusal", { hasText: "8 sampai 200 karakter" }).waitFor()
      await fill({ "Kata sandi": "quite another password" })
      await press("Buat akun")
      await said("ann@example.com")
      expect(await page.evaluate<string>("localStorage.getItem('rakit.session')")).toBe(null)
      await page.getByRole("link", { name: "Dokumentasi" }).click()
      await page.waitForURL(`${platform.url}/docs`)
    })

    it("a wrong password and an unknown address get the same words", async () => {
      await newAccount("eve@example.com", "a long password")
      for (const email of ["eve@example.com", "nobody@example.com"]) {
        await signIn(email, "not the password")
        await page
          .locator(".notice.bad", { hasText: "The e-mail address or the password is wrong." })
          .waitFor()
        await page.reload()
      }
    })

    it("a new password by mail ends the sessions that were there", async () => {
      const email = "bob@example.com"
      await newAccount(email, "the old password")
      await signIn(email, "the old password")
      await heading("Overview")

      const other = await openPage(browser)
      await other.page.goto(`${platform.url}/dashboard#forgot`)
      await other.page.getByLabel("E-mail").fill(email)
      await other.page.getByRole("button", { name: "Send the link" }).click()
      await other.page.getByText(`Check your mail: if ${email} has an account`).waitFor()
      const [link] = await mailedLinks(platform, email, "reset")
      await other.page.goto(link!)
      expect(await other.page.evaluate<string>("location.hash")).toBe("#reset")
      await other.page.locator("input[name=password]").fill("the new password")
      await other.page.getByRole("button", { name: "Set the password" }).click()
      await other.page
        .getByText("Your password was changed, and all sessions have ended.")
        .waitFor()
      await other.page.goto(link!)
      await other.page.locator("input[name=password]").fill("yet another password")
      await other.page.getByRole("button", { name: "Set the password" }).click()
      await other.page.locator(".notice.bad").waitFor()
      expect(other.complaints).toEqual([])
      await other.close()

      await page.getByRole("link", { name: "Keys", exact: true }).click()
      await said("Your session has ended. Please sign in again.")
      await signIn(email, "the old password")
      await page.locator(".notice.bad").waitFor()
      await fill({ Password: "the new password" })
      await press("Sign in")
      // the route before the end of the session does not matter: sign-in was opened by its own
      // address
      await heading("Overview")
    })

    it("the account page changes password and address, and deletes the account", async () => {
      const email = "kim@example.com"
      await newAccount(email, "the old password")
      await signIn(email, "the old password")
      await heading("Overview")
      await page.getByRole("link", { name: "Account", exact: true }).click()
      await heading("Account")
      const part = (name: string) => page.getByRole("form", { name, exact: true })
      const write = async (name: string, fields: Record<string, string>, button: string) => {
        for (const [label, text] of Object.entries(fields))
          await part(name).getByLabel(label, { exact: true }).fill(text)
        await part(name).getByRole("button", { name: button, exact: true }).click()
      }
      const passwords = { "Current password": "wrong", "New password": "the new password" }
      await write("Change the password", passwords, "Save")
      await page.locator(".refusal", { hasText: "This is not the account's password." }).waitFor()
      const right = { ...passwords, "Current password": "the old password" }
      await write("Change the password", right, "Save")
      await said("Your password was changed, and all other sessions have ended.")
      const again = { "Current password": "the new password" }
      await write("Sessions", again, "End all other sessions")
      // not the notice of the new password, which ends alike
      await said(/^All other sessions have ended\.$/)

      const next = "kim.new@example.com"
      const address = { "New e-mail address": next, "Current password": "the new password" }
      await write("E-mail address", address, "Send the link")
      await said(`Check your mail: we wrote to ${next}.`)
      const [link] = await mailedLinks(platform, next, "email")
      await page.goto(link!)
      await said(`${next} is confirmed.`)
      expect(await page.evaluate<string>("location.hash")).toBe("#email")

      await page.getByRole("link", { name: "Account", exact: true }).click()
      await heading("Account")
      await press("Delete the account")
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Current password").fill("the new password")
      await dialog.getByRole("button", { name: "Delete the account" }).click()
      await said("Your account was deleted.")
      await signIn(next, "the new password")
      await page.locator(".notice.bad", { hasText: "password is wrong" }).waitFor()
    })

    it("a mailed link opened where the page is open already is taken as well", async () => {
      const link = await newAccount("ivy@example.com", "a long password")
      await open()
      await heading("Sign in")
      await page.evaluate(`location.hash = ${JSON.stringify(new URL(link).hash)}`)
      await said("ivy@example.com is confirmed.")
      expect(await page.evaluate<string>("location.hash")).toBe("#verify")
    })

    it("a session that is over says so and leads back, one that was forged too; other tabs follow", async () => {
      const email = "joe@example.com"
      await newAccount(email, "a long password")
      await signIn(email, "a long password")
      await heading("Overview")
      const tab = await page.context().newPage()
      await tab.goto(`${platform.url}/dashboard#keys`)
      await tab.getByRole("heading", { level: 1, name: "Keys" }).waitFor()

      const change = (what: string) =>
        page.evaluate(
          `localStorage.setItem("rakit.session", JSON.stringify({ ...JSON.parse(localStorage.getItem("rakit.session")), ${what} }))`,
        )
      await change("expiresAtMs: 1")
      await page.reload()
      await said("Your session of 24 hours is over. Please sign in again.")
      await tab.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()

      await signIn(email, "a long password")
      await heading("Overview")
      await tab.getByRole("heading", { level: 1, name: "Keys" }).waitFor()
      await press("Sign out")
      await tab.getByText("This session was ended in another window.").waitFor()
      await tab.close()

      await signIn(email, "a long password")
      await heading("Overview")
      await change('token: "eyJhbGciOiJub25lIn0.e30."')
      await page.reload()
      await said("Your session has ended. Please sign in again.")

      await signIn(email, "a long password")
      await heading("Overview")
      await press("Sign out")
      await said("You have signed out.")
      expect(await page.evaluate('localStorage.getItem("rakit.session")')).toBe(null)
    })

    it("speaks Indonesian where the browser does, and remembers what was chosen", async () => {
      const { page: halaman, complaints, close } = await openPage(browser, { locale: "id-ID" })
      await halaman.goto(`${platform.url}/dashboard`)
      await halaman.getByRole("heading", { level: 1, name: "Masuk" }).waitFor()
      expect(await halaman.evaluate("document.documentElement.lang")).toBe("id")
      await halaman.getByRole("button", { name: "English" }).click()
      await halaman.reload()
      await halaman.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
      expect(await halaman.evaluate("[document.documentElement.lang, document.title]")).toEqual([
        "en",
        "Sign in · Rakit",
      ])
      expect(complaints).toEqual([])
      await close()
    })
  },
)
