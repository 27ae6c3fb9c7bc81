import { readFile } from "node:fs/promises"
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

    const signedIn = async () => {
      const window = await openPage(browser)
      const { page } = window
      await page.goto(`${platform.url}/dashboard`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("navigation").getByRole("link", { name: "Calls" }).waitFor()
      return window
    }

    it("shows calls and refusals with stages, filters them, and saves them", async () => {
      expect([await chat("svc-lyt"), await chat("no-such-model")]).toEqual([200, 400])
      const { page, complaints } = await signedIn()
      await page.getByRole("navigation").getByRole("link", { name: "Calls" }).click()
      // the page before has a table, too
      const log = page.getByRole("table", { name: "Calls" })
      const rows = log.locator("tbody").getByRole("row")
      await rows.nth(1).waitFor()
      const [refused, paid] = await rows.allTextContents()
      expect(refused).toMatch(/refused.*400.*model_not_found/s)
      expect(paid).toMatch(/svc-lyt.*chat\.completions.*succeeded.*200.*Rp/s)
      const stages = page.getByRole("button", { name: /show where the time of .* went/ })
      await stages.click()
      expect(await stages.getAttribute("aria-expanded")).toBe("true")
      const list = page.getByRole("list", { name: "Where the time went" })
      await list.getByText("Limits and balance").waitFor()
      await page.getByText("First token after").waitFor()
      await stages.click()
      await expect.poll(() => list.count()).toBe(0)
      await page.getByLabel("Error code").selectOption("model_not_found")
      await expect.poll(() => rows.count()).toBe(1)
      const [csv] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Download CSV" }).click(),
      ])
      const text = await readFile(await csv.path(), "utf8")
      expect(text.trim().split("\r\n")).toEqual([
        expect.stringContaining("stages_ms"),
        expect.stringContaining("model_not_found"),
      ])
      await page.getByLabel("Error code").selectOption("")
      await page.getByLabel("State").selectOption("succeeded")
      await expect.poll(() => rows.count()).toBe(1)
      expect(complaints).toEqual([])
    })

    it("shows a receipt at its own address, verifies it, and says when there is none", async () => {
      expect(await chat("svc-lyt")).toBe(200)
      const { page, complaints } = await signedIn()
      await page.getByRole("navigation").getByRole("link", { name: "Ledger" }).click()
      await page
        .getByRole("link", { name: /^Show the receipt of/ })
        .first()
        .click()
      const view = page.getByRole("main")
      await view.getByText("The signature is right").waitFor()
      await view.getByText("What this receipt proves").waitFor()
      await view.getByText("All of it").click()
      await view.getByText('"currency": "IDR"').waitFor()
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        view.getByRole("button", { name: "Save as JSON" }).click(),
      ])
      expect(download.suggestedFilename()).toMatch(/^receipt-.*\.json$/)
      const { jws } = JSON.parse(await readFile(await download.path(), "utf8"))
      expect(jws.split(".")).toHaveLength(3)
      // the address alone leads there, too
      await page.reload()
      await view.getByText("The signature is right").waitFor()
      await page.evaluate("location.hash = 'receipt/0199aaaa-0000-7000-8000-000000000000'")
      await view.getByText("There is no call 0199aaaa-0000-7000-8000-000000000000").waitFor()
      await view.getByRole("link", { name: "To the call log" }).click()
      await page.getByRole("heading", { name: "Calls" }).waitFor()
      expect(complaints).toEqual([])
    })

    it("draws latency and error codes", async () => {
      expect([await chat("svc-lyt"), await chat("no-such-model")]).toEqual([200, 400])
      const { page, complaints } = await signedIn()
      await page.getByRole("navigation").getByRole("link", { name: "Usage" }).click()
      const legend = page.locator(".legend")
      await page.getByLabel("Chart of").selectOption("Latency")
      await page.getByRole("img", { name: "Latency per day" }).locator("canvas").waitFor()
      expect(await legend.textContent()).toMatch(/First token, median \d.*95th percentile \d.* m?s/)
      await page.getByRole("button", { name: "Today" }).click()
      await page.getByRole("img", { name: "Latency per hour" }).locator("canvas").waitFor()
      await page.getByText("As a table").click()
      await page.getByRole("cell", { name: /^\d+ \w+,? \d\d:00$/ }).waitFor()
      await page.getByLabel("Chart of").selectOption("Error codes")
      await page.getByRole("img", { name: "Error codes per hour" }).locator("canvas").waitFor()
      await legend.getByText("model_not_found").waitFor()
      await page.getByLabel("Model", { exact: true }).last().selectOption("svc-omni")
      await page.getByText("Nothing failed or was refused in this range.").waitFor()
      expect(complaints).toEqual([])
    })
  },
)
