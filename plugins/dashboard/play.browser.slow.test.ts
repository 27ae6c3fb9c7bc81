import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const title = installedChromium
  ? "the playground's tabs, in Chromium"
  : `skipped: ${withoutChromium}`

/** A second of silence: 16,000 samples of 16 bits. */
const silence = () => {
  const head = Buffer.alloc(44)
  head.write("RIFF", 0, "latin1")
  head.writeUInt32LE(36 + 32_000, 4)
  head.write("WAVEfmt ", 8, "latin1")
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(16_000, 24)
  head.writeUInt32LE(32_000, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write("data", 36, "latin1")
  head.writeUInt32LE(32_000, 40)
  return Buffer.concat([head, Buffer.alloc(32_000)])
}
const wav = { name: "halo.wav", mimeType: "audio/wav" }

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

  const opened = async (tab: string) => {
    const window = await openPage(browser)
    const { page } = window
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    await page
      .getByRole("navigation", { name: "What to try" })
      .getByRole("link", { name: tab, exact: true })
      .click()
    await page.getByRole("region", { name: tab, exact: true }).waitFor()
    return window
  }
  const code = async (page: Page, language: string) => {
    await page.getByText("View as code").click()
    return (await page.getByRole("region", { name: language }).textContent())!
  }
  const refusalOf = async (page: Page, label: string) => {
    const field = page.getByLabel(label, { exact: true })
    await page.locator(".field .refusal").waitFor()
    expect(await field.getAttribute("aria-invalid")).toBe("true")
    return page.locator(".field .refusal").textContent()
  }

  it("have addresses, and keep to them when the page loads again", async () => {
    const { page, complaints, close } = await opened("Rerank")
    expect(new URL(page.url()).hash).toBe("#playground/rerank")
    await page.reload()
    await page.getByRole("region", { name: "Rerank", exact: true }).waitFor()
    const tabs = page.getByRole("navigation", { name: "What to try" })
    expect(await tabs.locator("[aria-current]").textContent()).toBe("Rerank")
    await tabs.getByRole("link", { name: "Chat" }).focus()
    await page.keyboard.press("Enter")
    await page.getByLabel("Message", { exact: true }).waitFor()
    await page.goBack()
    await page.getByRole("region", { name: "Rerank", exact: true }).waitFor()
    expect(complaints).toEqual([])
    await close()
  })

  it("embeddings: texts and an image, compared, mapped and as code", async () => {
    const { page, complaints, close } = await opened("Embeddings")
    await page.getByLabel("Texts", { exact: true }).fill("kucing tidur\n\nkucing tidur\nbank buka")
    const buffer = await plainImage(7, 5, "red").png().toBuffer()
    await page
      .getByLabel("Images", { exact: true })
      .setInputFiles({ name: "red.png", mimeType: "image/png", buffer })
    const [sent] = await Promise.all([
      page.waitForRequest("**/v1/embeddings"),
      page.getByRole("button", { name: "Compare" }).click(),
    ])
    expect(sent.postDataJSON()).toEqual({
      model: "svc-embed",
      input: [
        "kucing tidur",
        "kucing tidur",
        "bank buka",
        { type: "image", image_url: `data:image/png;base64,${buffer.toString("base64")}` },
      ],
    })
    const table = page.getByRole("table", { name: "Similarity (cosine)" })
    const same = table.getByRole("row", { name: "2 kucing tidur" }).getByRole("cell").first()
    await same.waitFor()
    expect(await same.textContent()).toBe("1.00")
    expect(await same.getAttribute("class")).toBe("step-6")
    expect(await table.getByRole("row").count()).toBe(5)
    expect(await page.getByRole("img", { name: "A map of the texts" }).count()).toBe(1)
    expect(await page.locator(".plane circle").count()).toBe(4)
    await page.getByText("vectors: 4, of 2,048 numbers").waitFor()
    await page.getByText("images: 1").waitFor()
    await page.getByText("The nearest of each", { exact: true }).click()
    await page.getByText("kucing tidur → kucing tidur").first().waitFor()
    expect(await code(page, "curl")).toContain("data:image/png;base64,BASE64_OF_red.png")
    expect(await violations(page)).toEqual([])
    await page.emulateMedia({ colorScheme: "dark" })
    expect(await violations(page)).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })

  it("embeddings: of many texts the first ones are compared", async () => {
    const { page, complaints, close } = await opened("Embeddings")
    const texts = Array.from({ length: 60 }, (_, at) => `text ${at}`)
    await page.getByLabel("Texts", { exact: true }).fill(texts.join("\n"))
    await page.getByRole("button", { name: "Compare" }).click()
    await page.getByText("Only the first 50 are compared here.").waitFor()
    await page.getByText("vectors: 60, of 2,048 numbers").waitFor()
    const table = page.getByRole("table", { name: "Similarity (cosine)" })
    expect(await table.getByRole("row").count()).toBe(51)
    expect(complaints).toEqual([])
    await close()
  })

  it("embeddings: what is refused is beside its field", async () => {
    const { page, complaints, close } = await opened("Embeddings")
    const send = () => page.getByRole("button", { name: "Compare" }).click()
    await page.getByLabel("Texts", { exact: true }).fill("")
    await send()
    expect(await refusalOf(page, "Texts")).toContain("at least one")
    await page.getByLabel("Texts", { exact: true }).fill("halo")
    const file = { name: "no.png", mimeType: "image/png", buffer: Buffer.from("no image") }
    await page.getByLabel("Images", { exact: true }).setInputFiles(file)
    await send()
    expect(await refusalOf(page, "Images")).not.toBe("")
    expect(await page.getByLabel("Texts", { exact: true }).getAttribute("aria-invalid")).toBe(null)
    expect(complaints).toEqual([])
    await close()
  })

  it("rerank: the best documents first, with their lines, scores and cost", async () => {
    const { page, complaints, close } = await opened("Rerank")
    await page.getByLabel("Query", { exact: true }).fill("ibu kota")
    await page.getByLabel("Documents", { exact: true }).fill("laut\n\nibu kota baru\nkota")
    await page.getByLabel("Only the best", { exact: true }).fill("0")
    await page.getByRole("button", { name: "Sort" }).click()
    expect(await refusalOf(page, "Only the best")).toBe("Give a whole number from 1.")
    await page.getByLabel("Only the best", { exact: true }).fill("2")
    await page.getByRole("button", { name: "Sort" }).click()
    const rows = page.getByRole("table", { name: "Best first" }).locator("tbody tr")
    await rows.first().waitFor()
    expect(await rows.allTextContents()).toEqual(["1ibu kota baru21.0000", "2kota30.5000"])
    const bar = rows.nth(1).getByRole("progressbar", { name: "score 0.5000" })
    expect(await bar.getAttribute("value")).toBe("0.5")
    await page.getByRole("status").getByText("search units: 1").waitFor()
    await page.getByRole("status").getByText("2.50").waitFor()
    expect(await code(page, "Python")).toContain('"top_n": 2,')
    expect(await violations(page)).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })

  it("transcription: a chosen file as text with times, language and cost", async () => {
    const { page, complaints, close } = await opened("Transcription")
    await page
      .getByLabel("Audio file", { exact: true })
      .setInputFiles({ ...wav, buffer: silence() })
    await page.getByLabel("Spoken language", { exact: true }).fill("Bahasa")
    await page.getByRole("button", { name: "Transcribe" }).click()
    expect(await refusalOf(page, "Spoken language")).toContain("two or three small letters")
    await page.getByLabel("Spoken language", { exact: true }).fill("id")
    await page.getByRole("button", { name: "Transcribe" }).click()
    await page.locator(".words").getByText("Halo dunia.", { exact: true }).waitFor()
    const rows = page.getByRole("table", { name: "Segments" }).locator("tbody tr")
    expect(await rows.allTextContents()).toEqual(["0:00.0 – 0:02.0Halo", "0:02.0 – 0:04.0dunia."])
    const paid = page.getByRole("status").getByText("seconds of audio: 1")
    expect(await paid.textContent()).toContain("spoken: Indonesian · Rp\u00a01.50")
    expect(await code(page, "curl")).toContain(`-F 'file=@"halo.wav"'`)
    expect(await violations(page)).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })

  it("transcription: a file that is dropped; one without sound is refused beside it", async () => {
    const { page, complaints, close } = await opened("Transcription")
    const dropped = await page.evaluateHandle(
      `(() => { const held = new DataTransfer(); held.items.add(new File(["no sound"], "notes.wav", { type: "audio/wav" })); return held })()`,
    )
    await page.locator(".drop").dispatchEvent("drop", { dataTransfer: dropped })
    expect(await page.getByLabel("Audio file", { exact: true }).inputValue()).toMatch(/notes\.wav$/)
    await page.getByRole("button", { name: "Transcribe" }).click()
    expect(await refusalOf(page, "Audio file")).not.toBe("")
    expect(complaints).toEqual([])
    await close()
  })
})
