import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  installedChromium,
  openBrowser,
  openPage,
  withoutChromium,
} from "../../plugins/dashboard/testing/chromium.ts"
import { type Platform, startPlatform } from "../platform.ts"

const isBuilt = existsSync(fileURLToPath(new URL("../../dist/guide/index.html", import.meta.url)))

if (!installedChromium) it.skip(withoutChromium, () => {})

// the API page alone keeps a core busy for ten seconds
describe.skipIf(!installedChromium)("the pages of docs, in a browser", { timeout: 60_000 }, () => {
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

  it("runs an example of the API page with the visitor's key, and loads nothing from elsewhere", async () => {
    const { page, complaints, close } = await openPage(browser)
    const elsewhere: string[] = []
    page.on("request", (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(platform.url))
        elsewhere.push(request.url())
    })
    await page.goto(`${platform.url}/docs`)
    await page.locator("button.authorize").first().click()
    await page.locator("#auth-bearer-value").first().fill(platform.credentials.api_key)
    await page.locator(".auth-btn-wrapper .authorize").first().click()
    await page.locator(".auth-btn-wrapper .btn-done").first().click()
    await page.locator('.opblock-summary:has([data-path="/v1/embeddings"])').click()
    const [reply] = await Promise.all([
      page.waitForResponse(`${platform.url}/v1/embeddings`),
      page.getByRole("button", { name: "Execute" }).click(),
    ])
    expect([reply.status(), reply.request().headers().authorization]).toEqual([
      200,
      `Bearer ${platform.credentials.api_key}`,
    ])
    await page.locator(".live-responses-table").waitFor()
    expect(elsewhere).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })

  it("shows what a client calls, and all operations where asked", async () => {
    const { page, complaints, close } = await openPage(browser)
    const [chat, login] = ["/v1/chat/completions", "/dashboard/login"].map((path) =>
      page.locator(`.opblock-summary:has([data-path="${path}"])`),
    )
    await page.goto(`${platform.url}/docs`)
    await chat!.waitFor()
    expect(await login!.count()).toBe(0)
    await page.getByRole("link", { name: "All operations" }).click()
    await login!.waitFor()
    expect(await chat!.count()).toBe(1)
    await page.getByRole("link", { name: "Clients' operations only" }).click()
    await chat!.waitFor()
    expect(await login!.count()).toBe(0)
    expect(complaints).toEqual([])
    await close()
  })

  it.skipIf(!isBuilt)("leads through the guide, and finds a setting by its search", async () => {
    const { page, complaints, close } = await openPage(browser)
    await page.goto(`${platform.url}/docs/guide`)
    await page.getByRole("link", { name: "Config reference" }).first().click()
    await page.getByRole("heading", { name: "Config reference" }).waitFor()
    await page.keyboard.press("Control+k")
    await page.locator("#localsearch-input").fill("drainDelayMs")
    await page.locator(".VPLocalSearchBox .result").first().click()
    await page.locator(".vp-doc").getByText("drainDelayMs").first().waitFor()
    // opened by its address, as a link from elsewhere would
    await page.goto(`${platform.url}/docs/guide/plugins/accounts`)
    await page.getByRole("heading", { name: "Settings" }).waitFor()
    expect(complaints).toEqual([])
    await close()
  })
})
