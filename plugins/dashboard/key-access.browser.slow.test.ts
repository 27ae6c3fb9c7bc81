import OpenAI from "openai"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

describe.skipIf(!installedChromium)(
  installedChromium ? "what keys may do, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
    let platform: Platform
    let browser: Browser
    let page: Page
    let complaints: readonly string[]
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
      ;({ page, complaints } = await openPage(browser))
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click()

    it("a key of some endpoints and models, for a while, with a first call to copy", async () => {
      await page.goto(`${platform.url}/dashboard#keys`)
      await page.getByLabel("E-mail").fill(platform.credentials.email)
      await page.getByLabel("Password").fill(platform.credentials.password)
      await press("Sign in")
      await press("New key")
      await page.getByLabel("Name", { exact: true }).fill("narrow")
      await page.getByLabel("Valid until").fill("2020-01-01")
      await page.getByText("Endpoints and models", { exact: true }).click()
      await page.getByLabel("Chat", { exact: true }).check()
      await page.getByLabel("svc-lyt", { exact: true }).check()
      await press("Create key")
      await page.locator(".refusal", { hasText: "not over yet" }).waitFor()
      await page.getByLabel("Valid until").fill("2099-12-31")
      await press("Create key")
      const made = page.locator(".made")
      await made.getByText(`Base URL: ${platform.url}/v1`).waitFor()
      const narrow = await made.getByLabel("API key").inputValue()
      for (const name of ["curl", "JavaScript", "Python"]) {
        const text = await made.locator(`pre[aria-label=${name}]`).textContent()
        for (const part of [narrow, `${platform.url}/v1`, "svc-lyt"]) expect(text).toContain(part)
      }
      const shown = page.getByRole("article", { name: "narrow" })
      await shown.getByText("Endpoints: Chat").waitFor()
      await shown.getByText("Models: svc-lyt").waitFor()
      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: narrow,
        maxRetries: 0,
      })
      const messages = [{ role: "user" as const, content: "one two three" }]
      expect((await client.chat.completions.create({ model: "svc-lyt", messages })).id).toBeTruthy()
      await expect(client.files.list()).rejects.toMatchObject({ status: 403 })
      await made.getByRole("button", { name: "I have stored it" }).click()
      await shown.getByRole("button", { name: "Edit" }).click()
      await shown.getByLabel("Chat", { exact: true }).uncheck()
      await shown.getByLabel("svc-lyt", { exact: true }).uncheck()
      await shown.getByLabel("Valid until").fill("")
      await press("Save")
      await shown.getByText("Endpoints: Chat").waitFor({ state: "detached" })
      await shown.getByRole("button", { name: "Revoke" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click()
      await shown.locator(".badge.failed").waitFor()
      const icon = page.locator(".brand img")
      await expect
        .poll(() => icon.evaluate((image) => Reflect.get(image, "naturalWidth")))
        .toBeGreaterThan(0)
      expect(complaints).toEqual([])
    })

    it("a key keeps its endpoints when it is edited while they can't be listed", async () => {
      await press("New key")
      await page.getByLabel("Name", { exact: true }).fill("chatting")
      await page.getByText("Endpoints and models", { exact: true }).click()
      await page.getByLabel("Chat", { exact: true }).check()
      await press("Create key")
      await page.getByRole("article", { name: "chatting" }).waitFor()
      const error = { message: "busy", code: "server_busy" }
      await page.route("**/dashboard/scopes", (route) =>
        route.fulfill({ status: 503, json: { error } }),
      )
      await page.reload()
      await page.getByRole("alert").getByText("The server has too much to do").waitFor()
      await page
        .getByRole("article", { name: "chatting" })
        .getByRole("button", { name: "Edit" })
        .click()
      expect(await page.getByLabel("Chat", { exact: true }).isChecked()).toBe(true)
      await page.getByLabel("Name", { exact: true }).fill("renamed")
      const [sent] = await Promise.all([
        page.waitForRequest((request) => request.method() === "PATCH"),
        press("Save"),
      ])
      expect(sent.postDataJSON()).not.toHaveProperty("scopes")
      await page.getByRole("article", { name: "renamed" }).getByText("Endpoints: Chat").waitFor()
      expect(complaints).toEqual([])
    })
  },
)
