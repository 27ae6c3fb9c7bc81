import { readFileSync } from "node:fs"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium
  ? "images in the playground, in Chromium"
  : `skipped: ${withoutChromium}`

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
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    await page.goto(`${platform.url}/dashboard#playground/images`)
    await page.getByRole("region", { name: "Images", exact: true }).waitFor()
    return window
  }
  const pictures = (page: Page) =>
    page.getByRole("list", { name: "Pictures", exact: true }).getByRole("listitem")
  const parametersOf = async (page: Page, name: string) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: `Download the picture: ${name}` }).click(),
    ])
    const file = readFileSync(await download.path(), "latin1")
    return JSON.parse(/parameters\0(\{.*?\})/.exec(file)![1]!) as Record<string, unknown>
  }

  it("are made side by side, with one seed, and saved with their parameters", async () => {
    const { page, complaints, close } = await opened()
    await page.getByText("Nothing made yet").waitFor()
    await page.getByLabel("Prompt", { exact: true }).fill("a red cat")
    await page.getByLabel("Size", { exact: true }).fill("128x128")
    await page.getByRole("button", { name: "Add a picture" }).click()
    await page.getByRole("button", { name: "Add a picture" }).click()
    await page.getByLabel("Strength of picture 2").fill("1.2")
    await page.getByText("Pictures: 3. Together").getByText("Rp\u00a02,250").waitFor()
    const bodies: Record<string, unknown>[] = []
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/images/generations")) bodies.push(request.postDataJSON())
    })
    await page.getByRole("button", { name: "Make 3 pictures" }).click()
    await page.getByRole("link", { name: "Download the picture: anime 0.6" }).waitFor()
    const [first] = bodies
    const plain = { model: "svc-iris", prompt: "a red cat", size: "128x128", seed: first!.seed }
    expect(first!.seed).toSatisfy((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)
    const streamed = { stream: true, partial_images: 2 }
    expect(bodies).toEqual([
      { ...plain, ...streamed },
      { ...plain, lora: "dark", lora_strength: 1.2, ...streamed },
      { ...plain, lora: "anime", lora_strength: 0.6, ...streamed },
    ])
    expect(await pictures(page).locator("figcaption").allTextContents()).toEqual([
      "No LoRA",
      "dark 1.2",
      "anime 0.6",
    ])
    expect(await pictures(page).nth(1).locator(".bill").textContent()).toMatch(
      /^128x128 · seed \d+ · \d+\.\d s · Rp\u00a0750\.00 · /,
    )
    expect(await page.evaluate("document.querySelector('.picture img').naturalWidth")).toBe(128)
    expect(await parametersOf(page, "dark 1.2")).toMatchObject({
      prompt: "a red cat",
      lora: "dark",
      lora_strength: 1.2,
      seed: first!.seed,
    })
    await page.getByText("View as code").click()
    const python = await page.getByRole("region", { name: "Python" }).textContent()
    expect(python).toContain('"lora_strength": 1.2')
    expect(await violations(page)).toEqual([])
    await page.emulateMedia({ colorScheme: "dark" })
    expect(await violations(page)).toEqual([])
    // the same seed again gives the same picture
    await page.getByRole("button", { name: "Remove picture 3" }).click()
    await page.getByRole("button", { name: "Remove picture 2" }).click()
    await page.getByLabel("Seed", { exact: true }).fill("7")
    await page.getByRole("button", { name: "Make the picture" }).click()
    await pictures(page).getByText("seed 7").waitFor()
    expect(await pictures(page).count()).toBe(1)
    expect(complaints).toEqual([])
    await close()
  })

  it("change an image that is attached", async () => {
    const { page, complaints, close } = await opened()
    const buffer = await plainImage(96, 64, "red").png().toBuffer()
    expect(await page.getByLabel("Change", { exact: true }).count()).toBe(0)
    await page
      .getByLabel("Images to change")
      .setInputFiles({ name: "red.png", mimeType: "image/png", buffer })
    await page.getByLabel("Change", { exact: true }).fill("0.4")
    const [sent] = await Promise.all([
      page.waitForRequest("**/v1/images/edits"),
      page.getByRole("button", { name: "Make the picture" }).click(),
    ])
    expect(sent.postDataJSON()).toMatchObject({
      images: [`data:image/png;base64,${buffer.toString("base64")}`],
      strength: 0.4,
    })
    await pictures(page).getByText("96x64").waitFor()
    await page.getByText("View as code").click()
    const curl = await page.getByRole("region", { name: "curl" }).textContent()
    expect(curl).toContain(`-F 'image[]=@"red.png"'`)
    expect(curl).not.toContain("base64,")
    expect(complaints).toEqual([])
    await close()
  })

  it("that are refused say why beside the field, and nothing is drawn", async () => {
    const { page, complaints, close } = await opened()
    const refusal = page.locator(".field .refusal")
    const make = () => page.getByRole("button", { name: "Make the picture" }).click()
    await page.getByLabel("Size", { exact: true }).fill("5000x10")
    await make()
    await refusal.getByText("Give a width and a height").waitFor()
    expect(await page.getByLabel("Size", { exact: true }).getAttribute("aria-invalid")).toBe("true")
    await page.getByLabel("Size", { exact: true }).fill("")
    await page.getByLabel("Steps", { exact: true }).fill("99")
    await make()
    await refusal.getByText("whole number from 1 to 50").waitFor()
    await page.getByLabel("Steps", { exact: true }).fill("")
    const files = page.getByLabel("Images to change")
    await files.setInputFiles({ name: "a.png", mimeType: "image/png", buffer: Buffer.from("no") })
    await make()
    await refusal.getByText("PNG, JPEG, WebP or GIF").waitFor()
    const buffer = await plainImage(64, 64, "red").png().toBuffer()
    const file = { name: "a.png", mimeType: "image/png", buffer }
    await files.setInputFiles([file, file, file, file, file, file])
    await make()
    await refusal.getByText("at most five").waitFor()
    expect(await page.locator(".picture").count()).toBe(0)
    expect(complaints).toEqual([])
    await close()
  })

  it("are stopped: what is done stays, the rest is not made and not paid", async () => {
    const { page, complaints, close } = await opened()
    await page.getByRole("button", { name: "Add a picture" }).click()
    await page.getByRole("button", { name: "Add a picture" }).click()
    let calls = 0
    await page.route("**/v1/images/generations", async (route) => {
      calls++
      // the second one hangs, as one of a slow model
      if (calls === 1) await route.continue()
    })
    await page.getByRole("button", { name: "Make 3 pictures" }).click()
    await pictures(page).nth(1).getByText("is made …").waitFor()
    await vi.waitFor(() => expect(calls).toBe(2))
    await page.getByRole("button", { name: "Stop" }).click()
    await pictures(page).nth(2).getByText("Stopped: it is not charged.").waitFor()
    await pictures(page).nth(1).getByText("Stopped: it is not charged.").waitFor()
    await pictures(page).nth(0).getByRole("link").waitFor()
    expect(calls).toBe(2)
    expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0)
    expect(complaints).toEqual([])
    await close()
  })

  it("that fail say so in their place, and the next ones are made", async () => {
    const { page, complaints, close } = await opened()
    await page.getByRole("button", { name: "Add a picture" }).click()
    let calls = 0
    await page.route("**/v1/images/generations", (route) =>
      ++calls === 1 ? route.abort() : route.continue(),
    )
    await page.getByRole("button", { name: "Make 2 pictures" }).click()
    await pictures(page).nth(1).getByRole("link").waitFor()
    await pictures(page).nth(0).getByText("The server can't be reached.").waitFor()
    expect(complaints).toEqual([])
    await close()
  })
})
