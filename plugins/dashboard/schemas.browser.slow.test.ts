import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium
  ? "schemas, and a chat with all of its settings, in Chromium"
  : `skipped: ${withoutChromium}`

const root = join(import.meta.dirname, "../..")

/** config/test.yaml with the checker of schemas, which a backend brings, and models that keep them. */
const configWithChecker = (folder: string) => {
  const text = readFileSync(join(root, "config/test.yaml"), "utf8")
    .replace("  ../testing/", `  backend-onnx: {}\n  ${join(root, "testing")}/`)
    .replaceAll("[chat]", "[chat, structured_output, tool_use, thinking]")
  const config = join(folder, "test.yaml")
  writeFileSync(config, text)
  return config
}

describe.skipIf(!installedChromium)(title, { timeout: 90_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-schemas-"))
  let platform: Platform
  let browser: Browser
  beforeAll(async () => {
    platform = await startPlatform({ config: configWithChecker(folder) })
    browser = await openBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await platform?.close()
    rmSync(folder, { recursive: true })
  })

  const opened = async (place: string) => {
    const window = await openPage(browser)
    const { page } = window
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("navigation").getByRole("link", { name: place, exact: true }).click()
    return window
  }
  const schema = (page: Page) => page.getByLabel("JSON Schema", { exact: true })
  const check = (page: Page) => page.getByRole("button", { name: "Check the schema" }).click()
  const verdict = (page: Page) => page.getByRole("region", { name: "Result of the check" })

  it("that is refused says why at its line; one that is kept goes along to the playground", async () => {
    const { page, complaints, close } = await opened("Schemas")
    await page.getByText("Nothing to check yet").waitFor()
    await page.getByRole("button", { name: "Example: one that is refused" }).click()
    await check(page)
    await verdict(page).getByText("A request with this schema is refused.").waitFor()
    const refused = verdict(page).locator("li.refused")
    expect(await refused.count()).toBe(1)
    expect(await refused.getAttribute("value")).toBe("9")
    expect(await refused.locator("code").first().textContent()).toContain('"$ref"')
    await refused.getByText("is not in this document").waitFor()
    expect(await verdict(page).getByRole("link").count()).toBe(0)
    expect(await violations(page)).toEqual([])

    await page.getByLabel("Model", { exact: true }).selectOption("svc-omni")
    await page.getByRole("button", { name: "Example: a person" }).click()
    await check(page)
    await verdict(page).getByText("A request with this schema is accepted.").waitFor()
    await verdict(page)
      .getByText(/[1-9]\d* enforced, 0 only notes, 0 refused/)
      .waitFor()
    const text = await schema(page).inputValue()
    await page.getByRole("link", { name: "Try it in the playground" }).click()
    await page.getByLabel("Message", { exact: true }).waitFor()
    expect(await schema(page).inputValue()).toBe(text)
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("svc-omni")
    await page.getByLabel("Message", { exact: true }).fill("Who?")
    await page.keyboard.press("Enter")
    await page.locator(".message.assistant").getByText('"name":"sample"').waitFor()
    // it is brought along once
    await page.getByRole("navigation").getByRole("link", { name: "Schemas" }).click()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    await page.getByText("Structured output", { exact: true }).click()
    expect(await schema(page).inputValue()).toBe("")
    expect(complaints).toEqual([])
    await close()
  })

  it("that is none says so: JSON beside the field, JSON Schema at its line", async () => {
    const { page, complaints, close } = await opened("Schemas")
    await schema(page).fill('{\n  "type": "object",\n}')
    await check(page)
    await page.locator(".refusal").getByText("This is no valid JSON: look at line 3.").waitFor()
    expect(await schema(page).getAttribute("aria-invalid")).toBe("true")
    await schema(page).fill('{\n  "type": "thing"\n}')
    await check(page)
    await verdict(page).getByText("This is JSON, but no JSON Schema.").waitFor()
    const refused = verdict(page).locator("li.refused")
    expect(await refused.getAttribute("value")).toBe("2")
    await refused.getByText('type "thing" does not exist').waitFor()
    expect(complaints).toEqual([])
    await close()
  })

  it("in a chat: system message, temperature, thoughts, tools, a schema, and another answer", async () => {
    const { page, complaints, close } = await opened("Playground")
    const temperature = page.getByLabel("Temperature")
    expect(await temperature.inputValue()).toBe("0.2")
    await page.getByLabel("Model", { exact: true }).selectOption("svc-omni")
    expect(await temperature.inputValue()).toBe("0.7")
    await page.getByText("0.7 is what the operator recommends for this model.").waitFor()
    await temperature.fill("0.4")
    await page.getByLabel("Model", { exact: true }).selectOption("svc-lyt")
    expect(await temperature.inputValue()).toBe("0.4")
    await page.getByLabel("System message").fill("You are brief.")
    await page.getByLabel("Think first").check()
    await page.getByText("Structured output", { exact: true }).click()
    const wanted = { type: "object", required: ["n"], properties: { n: { type: "integer" } } }
    await schema(page).fill(JSON.stringify(wanted))
    await check(page)
    await page.getByText("A request with this schema is accepted.").waitFor()
    await page.getByText("Tools", { exact: true }).click()
    await page.getByRole("button", { name: "Fill in an example" }).click()

    await page.getByLabel("Message", { exact: true }).fill("cuaca?")
    const [asked] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      page.getByLabel("Message", { exact: true }).press("Enter"),
    ])
    const sent = asked.postDataJSON()
    expect(sent).toMatchObject({
      model: "svc-lyt",
      messages: [
        { role: "system", content: "You are brief." },
        { role: "user", content: "cuaca?" },
      ],
      temperature: 0.4,
      chat_template_kwargs: { enable_thinking: true },
      response_format: { json_schema: { schema: wanted } },
      tool_choice: "auto",
    })
    await page.getByLabel("Result of get_weather").fill("hujan")
    await page.getByRole("button", { name: "Send the results" }).click()
    const answer = page.locator(".message.assistant").nth(1)
    await answer.getByText("tokens in").waitFor()
    expect(await answer.locator(".markdown").textContent()).toContain('{"n":1}')
    await answer.getByText("Thoughts").click()
    await answer.getByText("Let me think.").waitFor()
    const [again] = await Promise.all([
      page.waitForRequest("**/v1/chat/completions"),
      answer.getByRole("button", { name: "Another answer" }).click(),
    ])
    expect(again.postDataJSON().messages.map(({ role }: { role: string }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
    ])
    await answer.getByText("tokens in").waitFor()
    await page.getByText("View as code").click()
    const python = (await page.getByRole("region", { name: "Python" }).textContent())!
    expect(python).toMatch(/extra_body=\{\s*"chat_template_kwargs"/)
    expect(await violations(page)).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })
})
