import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium ? "tools in a chat, in Chromium" : `skipped: ${withoutChromium}`

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

  const opened = async () => {
    const window = await openPage(browser)
    const { page } = window
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    await page.getByLabel("Model", { exact: true }).selectOption("svc-lyt")
    return window
  }
  const toolsField = (page: Page) => page.getByLabel("Tools that the model may call")
  const ask = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text)
    await page.getByLabel("Message", { exact: true }).press("Enter")
  }

  it("are called, take results, and stay in the code and the kept conversation", async () => {
    const { page, complaints, close } = await opened()
    await page.getByText("Tools", { exact: true }).click()
    await page.getByRole("button", { name: "Fill in an example" }).click()
    await page.getByLabel("Choice of tools").selectOption("required")
    await ask(page, "cuaca di Bogor")

    const card = page.locator(".call")
    await card.getByText("get_weather", { exact: true }).waitFor()
    await page.getByText("Ended with tool_calls").waitFor()
    const shown = page.getByRole("region", { name: "Arguments of get_weather" })
    expect(JSON.parse((await shown.textContent())!)).toEqual({ city: "sample" })
    // the next message is the result
    expect(await page.getByLabel("Message", { exact: true }).count()).toBe(0)
    expect(await page.getByRole("button", { name: "Send", exact: true }).count()).toBe(0)

    expect(await violations(page)).toEqual([])
    await card.getByLabel("Result of get_weather").fill("hujan 24 derajat")
    const [sent] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      page.getByRole("button", { name: "Send the results" }).click(),
    ])
    const { messages, tool_choice: choice, tools } = sent.postDataJSON()
    expect(choice).toBe("auto")
    expect(tools).toHaveLength(1)
    const id = messages[1].tool_calls[0].id
    expect(messages).toEqual([
      { role: "user", content: "cuaca di Bogor" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id,
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"sample"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: id, content: "hujan 24 derajat" },
    ])
    const answer = page.locator(".message.assistant").nth(1)
    await answer.getByText("tokens in").waitFor()
    expect(await answer.locator(".markdown").textContent()).toContain("hujan")
    await page.getByText("View as code").click()
    const code = await page.getByRole("region", { name: "curl" }).textContent()
    expect(code).toContain(`"tool_call_id": "${id}"`)
    expect(code).toContain('"tool_choice": "required"')

    await page.reload()
    await page.getByText("Earlier conversations").click()
    await page.getByRole("button", { name: "cuaca di Bogor", exact: true }).click()
    await card.getByText("get_weather", { exact: true }).waitFor()
    await page.locator(".message.tool").getByText("hujan 24 derajat").waitFor()
    expect(complaints).toEqual([])
    await close()
  })

  it("leave no half a call behind, when a message is sent while another answer comes", async () => {
    const { page, complaints, close } = await opened()
    await ask(page, "halo")
    await page.getByText("tokens in").waitFor()
    // as without HTTPS
    await page.evaluate(`{
      Object.defineProperty(navigator, "clipboard", { value: undefined })
      const real = window.fetch
      window.fetch = (path, options) => {
        if (path !== "/v1/chat/completions") return real(path, options)
        window.fetch = real
        const call = { index: 0, id: "half", function: { name: "get_weather", arguments: "{" } }
        const chunk = "data: " + JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] }) + "\\n\\n"
        const start = (controller) => controller.enqueue(new TextEncoder().encode(chunk))
        return Promise.resolve(new Response(new ReadableStream({ start })))
      }
    }`)
    await page.getByRole("button", { name: "Copy", exact: true }).first().click()
    await page.getByText("The browser does not allow it here.").waitFor()
    await page.getByRole("button", { name: "Another answer" }).click()
    await page.locator(".call").getByText("get_weather", { exact: true }).waitFor()
    const [sent] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      ask(page, "apa kabar"),
    ])
    expect(sent.postDataJSON().messages).toEqual([
      { role: "user", content: "halo" },
      { role: "user", content: "apa kabar" },
    ])
    await page.getByText("tokens in").waitFor()
    expect(complaints).toEqual([])
    await close()
  })

  it("that are none are refused beside the field, before anything is sent", async () => {
    const { page, complaints, close } = await opened()
    const sent: string[] = []
    page.on("request", (request) => sent.push(new URL(request.url()).pathname))
    await page.getByText("Tools", { exact: true }).click()
    await toolsField(page).fill("[{")
    await ask(page, "halo")
    await page.getByRole("alert").getByText("This is no valid JSON.").waitFor()
    expect(await toolsField(page).getAttribute("aria-invalid")).toBe("true")
    expect(sent).not.toContain("/v1/chat/completions")
    expect(await page.locator(".message").count()).toBe(0)

    await toolsField(page).fill('[{"type":"function"}]')
    await toolsField(page).blur()
    await page.getByText("Each tool is").waitFor()

    // what only the server knows: its words, beside the field, too
    const tool = { type: "function", function: { name: "f", description: 5 } }
    await toolsField(page).fill(JSON.stringify([tool]))
    await ask(page, "halo")
    await page.locator(".field .refusal").getByText("tools[0].function.description").waitFor()
    expect(await toolsField(page).getAttribute("aria-invalid")).toBe("true")
    expect(complaints).toEqual([])
    await close()
  })
})
