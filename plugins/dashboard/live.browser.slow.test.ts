import OpenAI from "openai"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

describe.skipIf(!installedChromium)(
  installedChromium ? "what follows the server, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 120_000 },
  () => {
    let platform: Platform
    let browser: Browser
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })

    it("the balance, without a reload; a server that is gone is said, and found again", async () => {
      const { page, close } = await openPage(browser)
      await page.goto(`${platform.url}/dashboard`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      const balance = page.locator(".figure .big .amount").first()
      const before = await balance.getAttribute("title")
      expect(before).toMatch(/^Rp\s[\d,.]+$/)
      await page.getByText("Live: figures follow the server.").waitFor({ state: "attached" })

      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: platform.credentials.api_key,
      })
      await client.chat.completions.create({
        model: "svc-lyt",
        messages: [{ role: "user", content: "one two three" }],
      })
      await page
        .locator(`.figure:first-child .big .amount:not([title="${before}"])`)
        .waitFor({ state: "attached" })

      await page.context().setOffline(true)
      await page.getByText("Not connected").waitFor({ state: "attached", timeout: 60_000 })
      await page.context().setOffline(false)
      await page
        .getByText("Live: figures follow the server.")
        .waitFor({ state: "attached", timeout: 60_000 })
      await close()
    })
  },
)
