import { readFile } from "node:fs/promises"
import OpenAI from "openai"
import type { Browser, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

// a browser and a whole server, on a machine that may be busy
describe.skipIf(!installedChromium)(
  installedChromium ? "an administrator's reports, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let page: Page
    let complaints: readonly string[]

    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
      const opened = await openPage(browser)
      page = opened.page
      complaints = opened.complaints
      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: platform.credentials.api_key,
      })
      await client.chat.completions.create({
        model: "svc-lyt",
        messages: [{ role: "user", content: "one two three" }],
      })
      await page.goto(`${platform.url}/dashboard#admin/revenue`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("heading", { level: 1, name: "Admin" }).waitFor()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })
    afterEach(() => expect(complaints).toEqual([]))

    const tab = (name: string) => page.locator(".tabs").getByRole("link", { name })
    const table = (name: string) => page.getByRole("table", { name })
    const saved = async () => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Download CSV" }).click(),
      ])
      return {
        name: download.suggestedFilename(),
        text: await readFile(await download.path(), "utf8"),
      }
    }

    it("revenue has an address, names accounts by their address, and saves a file", async () => {
      expect(await tab("Revenue").getAttribute("aria-current")).toBe("page")
      const charged = page.locator(".figure", { hasText: "Charged" })
      await charged.getByTitle("Rp\u00a00.024").waitFor()
      await charged.getByText("1 requests").waitFor()
      await page.locator(".figure", { hasText: "Paying accounts" }).getByText("1").first().waitFor()
      await table("By model").getByRole("row", { name: "svc-lyt" }).waitFor()
      await table("By endpoint").getByRole("row", { name: "chat.completions" }).waitFor()
      await table("By account").getByRole("row", { name: platform.credentials.email }).waitFor()
      await table("Credit in these days")
        .getByRole("row", { name: "Free credit" })
        .getByTitle("Rp\u00a050,000")
        .waitFor()
      const { name, text } = await saved()
      expect(name).toMatch(/^revenue-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
      expect(text).toContain("model,svc-lyt,1,0.024\r\n")
    })

    it("revenue of other days is asked for by preset and by date", async () => {
      await page.getByRole("button", { name: "Last 7 days" }).click()
      await page.locator(".figure", { hasText: "Charged" }).getByTitle("Rp\u00a00.024").waitFor()
      await page.getByLabel("To", { exact: true }).fill("2020-01-01")
      await page.locator(".field", { hasText: "From" }).locator(".refusal").waitFor()
      await page.getByLabel("From", { exact: true }).fill("2020-01-01")
      await page.getByText("Nothing was called in these days.").waitFor()
    })

    it("the server says how it is, and follows its state", async () => {
      await tab("Server").click()
      await page.waitForURL("**#admin/server")
      await page.locator(".head", { hasText: "test" }).getByText("ready").waitFor()
      await page.getByText(`process ${platform.process.pid}`).waitFor()
      await table("Health").getByRole("row", { name: "database" }).getByText("works").waitFor()
      const row = table("Models").getByRole("row", { name: "svc-lyt" })
      await row.getByText("ready").waitFor()
      await page.getByRole("progressbar", { name: "Memory" }).waitFor()
      await table("Background work").getByRole("row", { name: "webhook-delivery" }).waitFor()
      // what changes is seen without a reload
      await page.route("**/admin/server", async (route) => {
        const json = await (await route.fetch()).json()
        json.status = "failing"
        json.checks = [{ name: "storage", ok: false, reason: "the bucket is gone" }]
        Object.assign(json.models[0], { state: "failed", reason: "the file is torn" })
        await route.fulfill({ json })
      })
      await table("Health").getByRole("row", { name: "storage" }).getByText("failing").waitFor()
      await table("Health").getByText("the bucket is gone").waitFor()
      await row.getByText("the file is torn").waitFor()
      await page.unroute("**/admin/server")
      await table("Health").getByRole("row", { name: "database" }).waitFor()
    })

    it("prices are exact, with what they come from, and saved as a file", async () => {
      await tab("Prices").click()
      await page.waitForURL("**#admin/prices")
      const input = table("Prices in force")
        .getByRole("row", { name: "svc-lyt" })
        .filter({ hasText: "1M tokens in" })
        .first()
      await input.getByText("Rp\u00a01,500").waitFor()
      await input.getByText("Rp\u00a0750").waitFor()
      await input.getByText("config file").waitFor()
      await page.getByText("Lines of batches cost 50% of it.").waitFor()
      const { name, text } = await saved()
      expect(name).toBe("prices.csv")
      expect(text).toContain("svc-lyt,chat,config,,input,1000000 tokens,1500,1500,750\r\n")
    })

    it("accounts are the page's first part", async () => {
      await tab("Accounts").click()
      await table("Accounts").getByRole("button", { name: platform.credentials.email }).waitFor()
      expect(await page.evaluate("location.hash")).toBe("#admin")
    })
  },
)
