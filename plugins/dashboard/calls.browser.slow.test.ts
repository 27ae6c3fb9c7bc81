import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

describe.skipIf(!installedChromium)(
  installedChromium ? "the call log, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
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
    const chat = (model: string) =>
      fetch(`${platform.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${platform.credentials.api_key}`,
        },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "halo" }] }),
      }).then((reply) => reply.status)

    it("shows calls and refusals, filters them, and verifies a receipt in the browser", async () => {
      expect([await chat("svc-lyt"), await chat("no-such-model")]).toEqual([200, 400])
      const { page, complaints } = await openPage(browser)
      await page.goto(`${platform.url}/dashboard`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("navigation").getByRole("link", { name: "Calls" }).click()
      const rows = page.getByRole("table").locator("tbody").getByRole("row")
      await rows.nth(1).waitFor()
      const [refused, paid] = await rows.allTextContents()
      expect(refused).toMatch(/refused.*400.*model_not_found/s)
      expect(paid).toMatch(/svc-lyt.*chat\.completions.*succeeded.*200.*Rp/s)
      await page.getByLabel("State").selectOption("refused")
      await expect.poll(() => rows.count()).toBe(1)
      await page.getByLabel("State").selectOption("succeeded")
      await page.getByRole("button", { name: /^Show the receipt of/ }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByText("The signature is right").waitFor()
      await dialog.getByText("All of it").click()
      await dialog.getByText('"currency": "IDR"').waitFor()
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        dialog.getByRole("button", { name: "Save" }).click(),
      ])
      expect(download.suggestedFilename()).toMatch(/^receipt-.*\.json$/)
      expect(complaints).toEqual([])
    })
  },
)
