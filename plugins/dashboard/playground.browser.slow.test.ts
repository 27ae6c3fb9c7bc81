import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium ? "the playground, in Chromium" : `skipped: ${withoutChromium}`

describe.skipIf(!installedChromium)(title, { timeout: 90_000 }, () => {
  let platform: Platform
  let browser: Browser
  let window: Awaited<ReturnType<typeof openPage>>
  beforeAll(async () => {
    platform = await startPlatform()
    browser = await openBrowser()
    window = await openPage(browser)
    const { page } = window
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

  it("the playground attaches images for models that take them", async () => {
    const { page, complaints } = window
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    await page.getByLabel("Model", { exact: true }).selectOption("svc-lyt")
    expect(await page.getByLabel("Attach files").count()).toBe(0)
    await page.getByLabel("Model", { exact: true }).selectOption("svc-omni")
    const buffer = await plainImage(7, 5, "red").png().toBuffer()
    await page
      .getByLabel("Attach files")
      .setInputFiles({ name: "red.png", mimeType: "image/png", buffer })
    await page.getByLabel("Message", { exact: true }).fill("warna apa")
    const [sent] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      page.keyboard.press("Enter"),
    ])
    expect(sent.postDataJSON().messages).toEqual([
      {
        role: "user",
        content: [
          {
            type: "image_url",
            image_url: { url: `data:image/png;base64,${buffer.toString("base64")}` },
          },
          { type: "text", text: "warna apa" },
        ],
      },
    ])
    const shown = page.getByRole("img", { name: "red.png" })
    await shown.waitFor()
    const width = "document.querySelector('.attachments img').naturalWidth"
    await vi.waitFor(async () => expect(await page.evaluate(width)).toBe(7))
    await page.locator(".message.assistant").getByText("tokens in").waitFor()
    expect(await page.getByLabel("Attach files").inputValue()).toBe("")
    expect(complaints).toEqual([])
  })

  it("what is typed stays while the server lists no models", async () => {
    const { page, complaints } = window
    await page.route("**/readyz", (route) => route.fulfill({ json: { status: "starting" } }))
    await page.reload()
    await page.getByLabel("Message", { exact: true }).fill("a draft")
    await page.route("**/v1/models", (route) => route.fulfill({ status: 503, json: {} }))
    for (let seen = 0; seen < 2; seen++)
      await page.waitForResponse((reply) => reply.url().endsWith("/models") && !reply.ok())
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("a draft")
    await page.unrouteAll()
    expect(complaints).toEqual([])
  })
})
