import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const password = "a long password"

// a browser and a whole server, on a machine that may be busy
describe.skipIf(!installedChromium)(
  installedChromium ? "sessions, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 120_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let accounts = 0
    let email: string
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
    }, 120_000)
    beforeEach(async () => {
      email = `ada${++accounts}@example.com`
      await ask("POST", "/dashboard/signup", { email, password })
    })
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })

    const ask = async (method: string, path: string, body?: unknown, token?: string) => {
      const reply = await fetch(platform.url + path, {
        method,
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          "user-agent": "curl/8.5.0",
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      // biome-ignore lint/suspicious/noExplicitAny: JSON
      return { status: reply.status, json: (await reply.json()) as any }
    }
    const signIn = async (page: Page, who: { email: string; password: string }) => {
      await page.goto(`${platform.url}/dashboard#sign-in`)
      await page.getByLabel("E-mail").fill(who.email)
      await page.getByLabel("Password").fill(who.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    }
    const stored = (page: Page) =>
      page.evaluate<{ token: string; key?: string }>(
        'JSON.parse(localStorage.getItem("rakit.session"))',
      )

    /** As the page is, and dark on a phone. */
    const expectNoFaults = async (page: Page) => {
      expect(await violations(page)).toEqual([])
      await page.emulateMedia({ colorScheme: "dark" })
      await page.setViewportSize({ width: 360, height: 800 })
      expect(await violations(page)).toEqual([])
      const over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
      expect(await page.evaluate(over)).toBe(0)
      await page.emulateMedia({ colorScheme: "light" })
      await page.setViewportSize({ width: 1280, height: 720 })
    }

    it("stay on the page that one goes to as soon as they have begun", async () => {
      const { page, complaints, close } = await openPage(browser)
      await page.goto(`${platform.url}/dashboard#sign-in`)
      await page.evaluate(`new MutationObserver((_, observer) => {
        if (document.querySelector("h1")?.textContent !== "Overview") return
        observer.disconnect()
        location.hash = "#account"
      }).observe(document.getElementById("app"), { childList: true, subtree: true })`)
      await page.getByLabel("E-mail").fill(email)
      await page.getByLabel("Password").fill(password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("region", { name: "Two-factor sign-in" }).waitFor()
      expect(new URL(page.url()).hash).toBe("#account")
      await close()
      expect(complaints).toEqual([])
    })

    it("are listed on the account page, and one is ended; signing out ends this one", async () => {
      const { page, complaints, close } = await openPage(browser)
      await signIn(page, { email, password })
      const other = (await ask("POST", "/dashboard/login", { email, password })).json.token
      await page.getByRole("link", { name: "Account", exact: true }).click()
      const card = page.getByRole("region", { name: "Sessions" })
      const rows = card.getByRole("listitem")
      await rows.filter({ hasText: "curl" }).getByText("127.0.0.1").waitFor()
      expect(await rows.count()).toBe(2)
      const own = rows.filter({ hasText: "this one" })
      expect(await own.textContent()).toMatch(/Chrome \d+ on Linux/)
      expect(await own.getByRole("button").count()).toBe(0)
      await expectNoFaults(page)

      await card.getByRole("button", { name: "End the session of curl" }).click()
      await page.keyboard.press("Escape")
      expect((await ask("GET", "/dashboard/me", undefined, other)).status).toBe(200)
      await card.getByRole("button", { name: "End the session of curl" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).click()
      await card.getByText("The session of curl has ended.").waitFor()
      await vi.waitFor(async () => expect(await rows.count()).toBe(1))
      expect((await ask("GET", "/dashboard/me", undefined, other)).status).toBe(401)

      await ask("POST", "/dashboard/login", { email, password })
      await card.getByLabel("Current password").fill(password)
      await card.getByRole("button", { name: "End all other sessions" }).click()
      await card.getByText("All other sessions have ended.").waitFor()
      await vi.waitFor(async () => expect(await rows.count()).toBe(1))

      const { token } = await stored(page)
      await page.getByRole("button", { name: "Sign out" }).click()
      await page.getByText("You have signed out.").waitFor()
      await vi.waitFor(async () =>
        expect((await ask("GET", "/dashboard/me", undefined, token)).status).toBe(401),
      )
      await close()
      expect(complaints).toEqual([])
    })

    it("an administrator sees a customer's dashboard, read-only, and comes back", async () => {
      const { page, complaints, close } = await openPage(browser)
      await signIn(page, platform.credentials)
      const own = await stored(page)
      const { data } = (await ask("GET", `/admin/accounts?q=${email}`, undefined, own.token)).json
      await ask("POST", `/admin/accounts/${data[0].id}/verify`, undefined, own.token)
      const open = async () => {
        await page.goto(`${platform.url}/dashboard#admin`)
        await page.getByRole("button", { name: email }).click()
        await page.getByRole("button", { name: "See as this customer" }).click()
        const dialog = page.getByRole("dialog")
        await dialog.getByLabel("Reason").fill("ticket <b>12</b>")
        await dialog.getByRole("button", { name: "See as this customer" }).click()
        await banner.waitFor()
      }
      const banner = page.getByText(`You see ${email}’s account, read-only.`)
      await open()
      await page.getByText(/It ends on .*\d{4}/).waitFor()
      await page.locator(".figure", { hasText: "Balance" }).getByTitle("Rp\u00a050,000").waitFor()
      await expectNoFaults(page)
      const seen = await stored(page)
      expect(seen.token).not.toBe(own.token)
      for (const name of ["Admin", "Sign out"])
        expect(await page.getByText(name, { exact: true }).count(), name).toBe(0)

      // what keys read is shown, too, and nothing is changed by any page
      await page.getByRole("link", { name: "Batches" }).click()
      await page.getByText(/No batches yet/).waitFor()
      await page.getByRole("link", { name: "Keys" }).click()
      await page.getByRole("button", { name: "New key" }).click()
      await page.getByLabel("Name", { exact: true }).fill("mine")
      await page.getByRole("button", { name: "Create key" }).click()
      await page.getByText("You see this account read-only").waitFor()
      await page.getByRole("link", { name: "Playground" }).click()
      await page.getByLabel("Message", { exact: true }).fill("hello")
      await page.getByRole("button", { name: "Send" }).click()
      await page.getByText("You see this account read-only").waitFor()
      const chat = { model: "svc-lyt", messages: [{ role: "user", content: "hello" }] }
      expect(await ask("POST", "/v1/chat/completions", chat, seen.key)).toMatchObject({
        status: 403,
        json: { error: { code: "read_only_session" } },
      })
      await page.reload()
      await banner.waitFor()

      await page.getByRole("button", { name: "Back to your account" }).click()
      await page.getByText("You are back in your own session.").waitFor()
      await page.getByRole("heading", { level: 1, name: "Admin" }).waitFor()
      expect((await stored(page)).token).toBe(own.token)
      const audit = page.getByRole("table", { name: "Audit log" }).getByRole("row")
      await audit
        .filter({ hasText: "account.impersonate_end" })
        .filter({ hasText: email })
        .waitFor()
      const begun = audit.filter({ hasText: "ticket <b>12</b>" }).filter({ hasText: email })
      await begun.locator("li", { hasText: "expires_at" }).locator("time").waitFor()
      for (const path of ["/dashboard/me", "/dashboard/keys"])
        expect((await ask("GET", path, undefined, seen.token)).status, path).toBe(401)

      // ended elsewhere: the own session goes on. It ends once the next page is there, as late
      // requests of the one before would have it said on that one
      await open()
      await page.route("**/dashboard/usage?*", async (route) => {
        if (page.url().endsWith("#usage"))
          await ask("POST", "/admin/end-impersonation", undefined, own.token)
        await route.continue()
      })
      await page.getByRole("link", { name: "Usage" }).click()
      await page.getByText("The view of the other account has ended.").waitFor()
      await page.getByRole("link", { name: "Admin" }).waitFor()
      expect(await banner.count()).toBe(0)
      const { json } = await ask("GET", "/dashboard/calls", undefined, own.token)
      expect(JSON.stringify(json)).not.toContain("read_only_session")
      await close()
      expect(complaints).toEqual([])
    })
  },
)
