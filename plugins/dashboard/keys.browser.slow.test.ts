import { readFile } from "node:fs/promises"
import OpenAI from "openai"
import type { Browser, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

// a browser and a whole server, on a machine that may be busy
describe.skipIf(!installedChromium)(
  installedChromium ? "keys and money, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let window: Awaited<ReturnType<typeof openPage>>
    let page: Page
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
      window = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] })
      page = window.page
      await page.goto(`${platform.url}/dashboard`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })
    beforeEach(() => void window.complaints.splice(0))
    afterEach(() => expect(window.complaints).toEqual([]))

    const go = async (name: string) => {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click()
      await page.getByRole("heading", { level: 1, name, exact: true }).waitFor()
    }
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click()
    const saved = async (click: () => Promise<void>) => {
      const [download] = await Promise.all([page.waitForEvent("download"), click()])
      return {
        name: download.suggestedFilename(),
        text: await readFile(await download.path(), "utf8"),
      }
    }
    const evil = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'
    let apiKey = ""
    const call = () =>
      new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
        model: "svc-lyt",
        messages: [{ role: "user", content: "one two three" }],
      })
    const card = () => page.getByRole("article", { name: evil })

    it("a key is made, shown once and copied; what its name holds stays text", async () => {
      await go("Keys")
      await press("New key")
      await page.getByLabel("Name", { exact: true }).fill(evil)
      await page.getByLabel("Requests per minute").fill("0")
      await press("Create key")
      await page
        .locator(".field", { hasText: "Requests per minute" })
        .locator(".refusal", { hasText: "whole number" })
        .waitFor()
      await page.getByLabel("Requests per minute").fill("50")
      await page.getByLabel("Monthly cap in Rp").fill("100")
      await press("Create key")
      await page.getByRole("heading", { name: `Your new key: ${evil}` }).waitFor()
      await press("Copy")
      await page.getByText("Copied.").waitFor()
      apiKey = await page.evaluate<string>("navigator.clipboard.readText()")
      expect(apiKey).toMatch(/^svc_live_\w{32}$/)
      expect(await page.getByLabel("API key").inputValue()).toBe(apiKey)
      await press("I have stored it")
      await card().waitFor()
      expect(
        await page.evaluate(
          "[window.harmed ?? 'not harmed', document.querySelectorAll('main img, main script').length]",
        ),
      ).toEqual(["not harmed", 0])
      expect(await page.content()).not.toContain(apiKey)
      await page.reload()
      await card().waitFor()
      expect(await page.content()).not.toContain(apiKey)
    })

    it("the openai client works with it, and usage and ledger show the call", async () => {
      const answer = await call()
      expect(answer.choices[0]?.message.content).toBe("one two three")
      await go("Usage")
      await page.getByLabel("Key", { exact: true }).check()
      const row = page.getByRole("row", { name: evil })
      await row.waitFor()
      expect(await row.getByRole("cell").allTextContents()).toEqual([
        expect.stringMatching(/^\d+ \w+$/),
        evil,
        "svc-lyt",
        "1",
        "0",
        "4",
        "3",
        "Rp\u00a00.0240",
      ])
      await page.locator(".canvas canvas").waitFor()
      await page.getByLabel("Chart of").selectOption("Tokens")
      const tokens = page.locator(".legend li", { hasText: evil })
      await expect.poll(() => tokens.textContent()).toMatch(/ 7$/)
      await press("Last 7 days")
      const from = () => page.getByLabel("From", { exact: true }).inputValue().then(Date.parse)
      const to = await page.getByLabel("To", { exact: true }).inputValue().then(Date.parse)
      await expect.poll(async () => to - (await from())).toBe(6 * 86_400_000)
      await tokens.waitFor()
      const csv = await saved(() => press("Download CSV"))
      expect(csv.name).toMatch(/^usage-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
      expect(csv.text).toContain("svc-lyt")
      expect(csv.text).toContain("0.024")

      await go("Ledger")
      const charge = page.getByRole("row", { name: "chat.completions with svc-lyt" })
      await charge.waitFor()
      expect(await charge.textContent()).toContain("-Rp\u00a00.0240")
      await page.getByRole("row", { name: "+Rp\u00a050,000" }).waitFor()
      const receipt = await saved(() =>
        charge.getByRole("button", { name: /Save the receipt/ }).click(),
      )
      expect(JSON.parse(receipt.text)).toMatchObject({
        object: "receipt",
        jws: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      })
      const ledger = await saved(() => press("Download CSV"))
      expect([ledger.name, ledger.text.trim().split("\n").length]).toEqual(["ledger.csv", 3])

      await go("Overview")
      await page
        .locator(".figure", { hasText: "Spent this month" })
        .getByText("Rp\u00a00.0240")
        .waitFor()
      await page
        .locator(".figure", { hasText: "Balance" })
        .getByTitle("Rp\u00a049,999.976")
        .waitFor()
      await page.locator(".legend", { hasText: "svc-lyt" }).waitFor()
      await page.getByText("As a table").click()
      await page
        .getByRole("table", { name: /Spend per day/ })
        .getByText("Rp\u00a00.0240")
        .waitFor()
    })

    it("the chart shows what was spent in the colours of its legend, light and dark", async () => {
      const drawn = `(() => {
      const canvas = document.querySelector(".canvas canvas"), swatch = document.querySelector(".swatch")
      const [r, g, b] = getComputedStyle(swatch).backgroundColor.match(/\\d+/g).map(Number)
      const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height }).getContext("2d", { willReadFrequently: true })
      copy.drawImage(canvas, 0, 0)
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height)
      let count = 0
      for (let at = 0; at < data.length; at += 4) if (data[at] === r && data[at + 1] === g && data[at + 2] === b) count++
      return count
    })()`
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        await vi.waitFor(
          async () => expect(await page.evaluate<number>(drawn)).toBeGreaterThan(100),
          { timeout: 20_000, interval: 100 },
        )
      }
      await page.emulateMedia({ colorScheme: "light" })
      const legend = page.locator(".legend li").first()
      expect(await legend.textContent()).toBe("All days")
      // the chart is drawn anew for the other colours, so it may be gone for a moment
      const { width } = await vi.waitFor(async () => {
        const box = await page.locator(".u-over").boundingBox()
        expect(box).not.toBeNull()
        return box!
      })
      await page.locator(".u-over").hover({ position: { x: width - 20, y: 40 } })
      await legend.getByText(/^\d+ \w+$/).waitFor()
      await page.mouse.move(0, 0)
      await legend.getByText("All days").waitFor()
    })

    it("limits are changed in place", async () => {
      await go("Keys")
      await card().getByText("Rp\u00a00.0240 of Rp\u00a0100 this month").waitFor()
      expect(
        await page.evaluate(
          "[document.querySelector('progress').value, document.querySelector('progress').max]",
        ),
      ).toEqual([0.024, 100])
      await card().getByRole("button", { name: "Edit" }).click()
      await card().getByLabel("Requests per day").fill("1.5")
      await card().getByRole("button", { name: "Save" }).click()
      await card().locator(".field", { hasText: "Requests per day" }).locator(".refusal").waitFor()
      await card().getByLabel("Requests per day").fill("1234")
      await card().getByLabel("Largest request in MB").fill("51")
      await card().getByRole("button", { name: "Save" }).click()
      await card().locator(".field", { hasText: "Largest request" }).locator(".refusal").waitFor()
      await card().getByLabel("Largest request in MB").fill("8")
      await card().getByRole("button", { name: "Save" }).click()
      await card().getByText("1,234").waitFor()
      await card().getByText("Largest request in MB8").waitFor()
    })

    it("the playground streams an answer and says what it cost", async () => {
      await go("Playground")
      await page.getByLabel("Message", { exact: true }).fill("merah putih")
      await page.keyboard.press("Enter")
      const answer = page.locator(".message.assistant")
      await answer.getByText("3 tokens in, 2 out").waitFor()
      const text = ".words, .markdown"
      expect(await answer.locator(text).textContent()).toBe("merah putih")
      expect(await answer.locator(".bill b").textContent()).toBe("Rp\u00a00.0165")

      // stopped in the middle: the text so far stays, and is charged
      await page.getByLabel("Model", { exact: true }).selectOption("svc-omni")
      await page.getByLabel("Message", { exact: true }).fill("kata ".repeat(400).trim())
      await press("Send")
      await answer.nth(1).locator(".words", { hasText: "kata kata" }).waitFor()
      await press("Stop")
      await page.getByText("Stopped. What was written is paid.").waitFor()
      const cut = (await answer.nth(1).locator(text).textContent())!
      expect(cut.split(" ").length).toBeLessThan(400)
      // the playground's key is on no list
      await go("Keys")
      await card().waitFor()
      expect(await page.getByRole("article").count()).toBe(2)
    })

    it("a revoked key is refused", async () => {
      await card().getByRole("button", { name: "Revoke" }).click()
      const dialog = page.getByRole("dialog", { name: `Revoke ${evil}?` })
      await dialog.waitFor()
      await page.keyboard.press("Escape")
      await dialog.waitFor({ state: "detached" })
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Revoke")
      await card().getByRole("button", { name: "Revoke" }).click()
      await dialog.getByRole("button", { name: "Revoke" }).click()
      await card().getByText("revoked", { exact: true }).first().waitFor()
      await vi.waitFor(() => expect(call()).rejects.toMatchObject({ status: 401 }), {
        timeout: 15_000,
        interval: 100,
      })
    })

    it("no view is wider than a phone", async () => {
      await page.setViewportSize({ width: 360, height: 740 })
      for (const name of ["Overview", "Keys", "Usage", "Ledger", "Playground", "Admin"]) {
        await go(name)
        await page.locator("main", { hasNotText: "Loading" }).waitFor()
        expect([name, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([
          name,
          360,
        ])
      }
      await page.setViewportSize({ width: 1200, height: 900 })
    })

    it("the first Tab offers to skip to the content", async () => {
      await page.reload()
      await page.getByRole("heading", { level: 1 }).waitFor()
      await page.keyboard.press("Tab")
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content")
      await page.keyboard.press("Enter")
      expect(await page.evaluate("document.activeElement.id")).toBe("view")
    })

    it("the server refuses files that are not the page's, and what is known already costs nothing", async () => {
      const ask = (path: string, headers = {}) => fetch(platform.url + path, { headers })
      for (const path of [
        "nothing.js",
        "..%2fplugin.ts",
        "%2e%2e%2fplugin.ts",
        "views/..%2f..%2fplugin.ts",
        "words/",
        "main.js%00",
      ])
        expect([path, (await ask(`/dashboard/assets/${path}`)).status]).toEqual([path, 404])
      const shown = await (await ask("/dashboard")).text()
      const main = /\/dashboard\/assets\/main-\w+\.js/.exec(shown)![0]
      const first = await ask(main)
      const again = await ask(main, {
        "if-none-match": first.headers.get("etag")!,
      })
      expect([
        first.status,
        first.headers.get("cache-control"),
        again.status,
        (await again.text()).length,
      ]).toEqual([200, "public, max-age=31536000, immutable", 304, 0])
    })
  },
)
