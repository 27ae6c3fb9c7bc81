import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium ? "a conversation, in Chromium" : `skipped: ${withoutChromium}`

describe.skipIf(!installedChromium)(title, { timeout: 90_000 }, () => {
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

  it("is answered again, copied, shown as code, kept, opened again and forgotten", async () => {
    const { page, complaints } = await openPage(browser, {
      permissions: ["clipboard-read", "clipboard-write"],
    })
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    await page.getByLabel("Message", { exact: true }).fill("**halo** dunia")
    await page.keyboard.press("Enter")
    const answer = page.locator(".message.assistant")
    await answer.getByText("tokens in").waitFor()
    const text = await answer.locator(".markdown").textContent()
    await answer.getByRole("button", { name: "Copy" }).click()
    await answer.getByText("Copied.").waitFor()
    expect(String(await page.evaluate("navigator.clipboard.readText()"))).toContain(
      text!.trim().slice(0, 4),
    )
    const [again] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      answer.getByRole("button", { name: "Another answer" }).click(),
    ])
    expect(again.postDataJSON().messages).toEqual([{ role: "user", content: "**halo** dunia" }])
    await answer.getByText("tokens in").waitFor()
    await page.getByText("View as code").click()
    await page.getByRole("region", { name: "Python" }).getByText("**halo** dunia").waitFor()

    await page.getByText("Structured output", { exact: true }).click()
    await page.getByLabel("JSON Schema").fill("{")
    await page.getByRole("button", { name: "Check the schema" }).click()
    await page.getByText("This is no valid JSON: look at line 1.").first().waitFor()
    await page.getByLabel("JSON Schema").fill("")

    await page.reload()
    await page.getByText("Earlier conversations").click()
    await page.getByRole("button", { name: "**halo** dunia", exact: true }).click()
    await answer.locator(".markdown").waitFor()
    await page.getByRole("button", { name: "Forget **halo** dunia" }).click()
    await page.getByText("Earlier conversations").waitFor({ state: "detached" })
    expect(await answer.count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it("that is left while it is answered does not write into the one that is opened", async () => {
    const { page, complaints } = await openPage(browser)
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    const ask = async (text: string) => {
      await page.getByLabel("Message", { exact: true }).fill(text)
      await page.keyboard.press("Enter")
    }
    await ask("pertama")
    const answer = page.locator(".message.assistant")
    await answer.getByText("tokens in").waitFor()
    const text = await answer.locator(".markdown").textContent()
    await page.getByRole("button", { name: "New conversation" }).click()

    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const body = 'data: {"choices":[{"delta":{"content":"of another"}}]}\n\ndata: [DONE]\n\n'
    let isOver = false
    await page.route("**/v1/chat/completions", async (route) => {
      await held
      await route.fulfill({ contentType: "text/event-stream", body }).catch(() => {})
      isOver = true
    })
    await ask("kedua")
    await page.getByRole("button", { name: "Stop" }).waitFor()
    await page.getByText("Earlier conversations").click()
    await page.getByRole("button", { name: "pertama", exact: true }).click()
    release()
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" })
    await expect.poll(() => isOver).toBe(true)
    expect(await answer.locator(".markdown").textContent()).toBe(text)
    const talks = await page.evaluate(
      "JSON.parse(localStorage.getItem(Object.keys(localStorage).find((k) => k.startsWith('rakit.talks'))))",
    )
    const said = (talks as { messages: { content: string }[] }[]).map(({ messages }) =>
      messages.map(({ content }) => content.trim()),
    )
    expect(said).toEqual([["kedua"], ["pertama", expect.any(String)]])
    expect(JSON.stringify(said)).not.toContain("of another")

    // a question ends the answer that was asked for again
    await page.unroute("**/v1/chat/completions")
    await page.route("**/v1/chat/completions", () => new Promise(() => {}))
    const ended = page.waitForEvent("requestfailed")
    await answer.getByRole("button", { name: "Another answer" }).click()
    await page.getByRole("button", { name: "Stop" }).waitFor()
    await ask("ketiga")
    expect((await ended).postDataJSON().messages).toHaveLength(1)
    expect(complaints).toEqual([])
  })
})
