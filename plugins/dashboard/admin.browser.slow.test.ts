import OpenAI from "openai"
import type { Browser, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

// a browser and a whole server, on a machine that may be busy
describe.skipIf(!installedChromium)(
  installedChromium ? "administration, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let admin: Awaited<ReturnType<typeof openPage>>
    let user: Awaited<ReturnType<typeof openPage>>
    const email = "user@example.com"
    const password = "a long password"

    const signIn = async (page: Page, who: { email: string; password: string }) => {
      await page.goto(`${platform.url}/dashboard`)
      await page.getByLabel("E-mail").fill(who.email)
      await page.getByLabel("Password").fill(who.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    }
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
      admin = await openPage(browser)
      user = await openPage(browser)
      await fetch(`${platform.url}/dashboard/signup`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email, password }),
      })
      await signIn(user.page, { email, password })
      await signIn(admin.page, platform.credentials)
      await admin.page.getByRole("link", { name: "Admin" }).click()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })
    afterEach(() => expect([...admin.complaints, ...user.complaints]).toEqual([]))

    const panel = () =>
      admin.page.locator("section", {
        has: admin.page.getByRole("heading", { level: 2, name: email }),
      })
    const does = async (name: string) => {
      await panel().getByRole("button", { name, exact: true }).click()
      await admin.page.getByRole("dialog").getByRole("button", { name, exact: true }).click()
      await admin.page.getByRole("dialog").waitFor({ state: "detached" })
    }
    const grant = async (amount: string, reason: string) => {
      await panel().getByLabel("Amount in Rp").fill(amount)
      await panel().getByLabel("Reason").fill(reason)
      await panel().getByRole("button", { name: "Grant credit" }).click()
    }
    const loseReply = (page: Page) =>
      page.route("**/grants", async (route) => {
        await route.fetch()
        await route.abort()
        await page.unroute("**/grants")
      })
    const audited = (action: string) =>
      admin.page
        .getByRole("table", { name: "Audit log" })
        .getByRole("row")
        .filter({ has: admin.page.getByRole("cell", { name: action, exact: true }) })

    it("is not offered to users", async () => {
      expect(await user.page.getByRole("link", { name: "Admin" }).count()).toBe(0)
      await user.page.goto(`${platform.url}/dashboard#admin`)
      await user.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    })

    it("an account is searched, confirmed, and given credit", async () => {
      const { page } = admin
      await page.getByRole("searchbox").fill("nobody-of-that-name")
      await page.getByRole("button", { name: "Search" }).click()
      await page.getByText("No such account.").waitFor()
      await page.getByRole("searchbox").fill("USER@")
      await page.keyboard.press("Enter")
      await page.getByRole("button", { name: email }).click()
      await does("Confirm the address")
      await panel().getByText("The address is confirmed.").waitFor()

      await grant("0", "nothing")
      await panel().locator(".field", { hasText: "Amount in Rp" }).locator(".refusal").waitFor()
      await grant("-60000", "too much")
      await panel()
        .locator(".field", { hasText: "Amount in Rp" })
        .locator(".refusal", { hasText: "balance" })
        .waitFor()
      await grant("1234.5", "<b>for the tests</b>")
      await panel().getByText("Booked: Rp\u00a01,234.5").waitFor()
      await panel().getByTitle("Rp\u00a051,234.5").first().waitFor()
      // the reply is lost: sending the request again makes no second grant
      await loseReply(page)
      await grant("0.5", "once")
      await panel().getByText("The server can't be reached.").waitFor()
      await panel().getByRole("button", { name: "Grant credit" }).click()
      await panel().getByText("Booked: Rp\u00a00.5").waitFor()
      await panel().getByTitle("Rp\u00a051,235").first().waitFor()
      // another one in its place is sent only to who has been asked to look
      await loseReply(page)
      await grant("0.25", "lost")
      await panel().getByText("The server can't be reached.").waitFor()
      await grant("0.75", "another")
      await panel().getByText("it may have been carried out").waitFor()
      await panel().getByRole("button", { name: "Grant credit" }).click()
      await panel().getByTitle("Rp\u00a051,236").first().waitFor()
      await grant("-1.5", "and back")
      await panel().getByTitle("Rp\u00a051,234.5").first().waitFor()
      await audited("account.grant").filter({ hasText: "for the tests" }).waitFor()
      const text = await audited("account.grant").filter({ hasText: "for the tests" }).textContent()
      for (const part of ["balance_idr 50000", "balance_idr 51234.5", "<b>for the tests</b>"])
        expect(text).toContain(part)
      await panel().locator("summary", { hasText: "Ledger" }).click()
      await panel().getByRole("row", { name: "<b>for the tests</b>" }).waitFor()

      await user.page.reload()
      await user.page
        .locator(".figure", { hasText: "Balance" })
        .getByTitle("Rp\u00a051,234.5")
        .waitFor()
      expect(await user.page.getByText(/not confirmed yet/).count()).toBe(0)
    })

    it("accounts are filtered, and one's keys and usage are shown", async () => {
      const { page } = admin
      const accounts = page.getByRole("table", { name: "Accounts" })
      await page.getByRole("searchbox").fill("")
      await page.getByLabel("State").selectOption("admin")
      await page.getByRole("button", { name: "Search" }).click()
      await accounts.getByRole("button", { name: email }).waitFor({ state: "detached" })
      await accounts.getByRole("button", { name: platform.credentials.email }).waitFor()
      await page.getByLabel("State").selectOption("active")
      await page.getByLabel("Balance below, in Rp").fill("51234.5")
      await page.getByRole("button", { name: "Search" }).click()
      await page.getByText("No such account.").or(accounts).first().waitFor()
      expect(await accounts.getByRole("button", { name: email }).count()).toBe(0)
      await page.getByLabel("Balance below, in Rp").fill("51234.6")
      await page.getByRole("button", { name: "Search" }).click()
      await accounts.getByRole("button", { name: email }).click()
      await panel().locator("summary", { hasText: "Keys" }).click()
      await panel().getByText("It has no keys yet").waitFor()
      await panel().locator("summary", { hasText: "Usage" }).click()
      await panel().getByText("No calls in these days.").waitFor()
      await panel().locator("summary", { hasText: "Calls" }).click()
      await panel().getByText("It has made no calls yet.").waitFor()
    })

    it("the audit log is filtered by address, action and days", async () => {
      const { page } = admin
      const filter = page.getByRole("form", { name: "Filter" })
      await filter.getByLabel("Who").fill(email)
      await filter.getByRole("button", { name: "Filter" }).click()
      await audited("account.grant").first().waitFor({ state: "detached" })
      await filter.getByLabel("Who").fill(platform.credentials.email)
      await filter.getByLabel("Action").fill("account.grant")
      await filter.getByRole("button", { name: "Filter" }).click()
      await audited("account.grant").first().waitFor()
      expect(await audited("account.verify").count()).toBe(0)
      await filter.getByLabel("To", { exact: true }).fill("2020-01-01")
      await filter.getByRole("button", { name: "Filter" }).click()
      await page.getByText("No entry matches").waitFor()
      for (const label of ["Who", "Action", "To"])
        await filter.getByLabel(label, { exact: true }).fill("")
      await filter.getByRole("button", { name: "Filter" }).click()
      await audited("account.grant").first().waitFor()
    })

    it("a suspended account sees why its calls are refused", async () => {
      await user.page.getByRole("link", { name: "Keys" }).click()
      await user.page.getByRole("button", { name: "New key" }).click()
      await user.page.getByLabel("Name", { exact: true }).fill("mine")
      await user.page.getByRole("button", { name: "Create key" }).click()
      const apiKey = await user.page.getByLabel("API key").inputValue()
      const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
      const call = () =>
        client.chat.completions.create({
          model: "svc-lyt",
          messages: [{ role: "user", content: "hi" }],
        })
      await call()
      await panel().locator("summary", { hasText: "Calls" }).click()
      await panel().locator("summary", { hasText: "Calls" }).click()
      const made = panel().getByRole("table", { name: "Calls" }).getByRole("row")
      await made.filter({ hasText: "svc-lyt" }).filter({ hasText: "succeeded" }).waitFor()

      await does("Suspend")
      await panel().getByText("It is suspended.").waitFor()
      await vi.waitFor(
        () => expect(call()).rejects.toMatchObject({ status: 403, code: "account_suspended" }),
        { timeout: 15_000, interval: 100 },
      )
      await user.page.reload()
      await user.page.getByText("This account is suspended").waitFor()
      await does("Unsuspend")
      await vi.waitFor(call, { timeout: 15_000, interval: 100 })
      await user.page.reload()
      await user.page.getByRole("heading", { level: 1, name: "Keys" }).waitFor()
      expect(await user.page.getByText("This account is suspended").count()).toBe(0)
      for (const action of ["account.suspend", "account.unsuspend"]) await audited(action).waitFor()
    })

    it("an admin can be made, but nobody demotes or suspends oneself", async () => {
      await does("Make admin")
      await user.page.reload()
      await user.page.getByRole("link", { name: "Admin" }).click()
      await user.page.getByRole("heading", { level: 1, name: "Admin" }).waitFor()
      await user.page.getByRole("button", { name: email }).click()
      await user.page.getByRole("heading", { level: 2, name: email }).waitFor()
      expect(await user.page.getByRole("button", { name: /^(Suspend|Make user)$/ }).count()).toBe(0)
      await does("Make user")
      await user.page.reload()
      await user.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    })
  },
)
