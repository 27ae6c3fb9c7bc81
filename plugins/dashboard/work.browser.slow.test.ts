import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { openReceiver, type Receiver } from "../../testing/receiver.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

const jsonl = (lines: readonly object[]) =>
  Buffer.from(lines.map((line) => JSON.stringify(line)).join("\n"))
const line = (n: number, more: object = {}) => ({
  custom_id: `line-${n}`,
  method: "POST",
  url: "/v1/embeddings",
  body: { model: "svc-embed", input: `text ${n}`, ...more },
})

const title = installedChromium
  ? "files, batches, knowledge and webhooks, in Chromium"
  : `skipped: ${withoutChromium}`

describe.skipIf(!installedChromium)(title, { timeout: 90_000 }, () => {
  let platform: Platform
  let receiver: Receiver
  let browser: Browser
  let page: Page
  let complaints: readonly string[]
  beforeAll(async () => {
    receiver = await openReceiver()
    platform = await startPlatform({
      env: { RAKIT_WEBHOOK_ALLOW_HOSTS: receiver.host, RAKIT_TEST_BATCH_POLL_MS: "100" },
    })
    browser = await openBrowser()
    const window = await openPage(browser)
    ;({ page, complaints } = window)
    await page.goto(`${platform.url}/dashboard`)
    await page.getByLabel("E-mail").fill(platform.credentials.email)
    await page.getByLabel("Password").fill(platform.credentials.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
  }, 120_000)
  afterAll(async () => {
    expect(complaints).toEqual([])
    await browser?.close()
    await platform?.close()
    await receiver?.close()
  })
  beforeEach(() => page.setViewportSize({ width: 1280, height: 900 }))

  const open = (name: string) =>
    page.getByRole("navigation").getByRole("link", { name, exact: true }).click()
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click()
  const give = (name: string, buffer: Buffer, mimeType = "text/plain") =>
    page.locator("input[type=file]").setInputFiles({ name, mimeType, buffer })
  const region = (name: string) => page.getByRole("region", { name, exact: true })
  /** The next request to an address waits until the returned function is called. */
  const hold = async (address: string) => {
    let letGo = () => {}
    const released = new Promise<void>((resolve) => {
      letGo = resolve
    })
    await page.route(address, (route) => released.then(() => route.continue()), { times: 1 })
    return () => letGo()
  }
  /** The next request to an address is carried out, but its reply is lost. */
  const loseReply = (address: string) =>
    page.route(
      address,
      async (route) => {
        await route.fetch()
        await route.abort()
      },
      { times: 1 },
    )
  const saved = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), press(name)])
    return Buffer.concat(await (await download.createReadStream()).toArray()).toString("utf8")
  }

  it("files are uploaded, dropped, downloaded and deleted", async () => {
    await open("Files")
    await page.getByText("No files yet.").waitFor()
    await give("notes.txt", Buffer.from("The warranty lasts three years."))
    await page.getByRole("cell", { name: /^notes.txt/ }).waitFor()
    expect(await saved("Download notes.txt")).toBe("The warranty lasts three years.")
    await give("virus.exe", Buffer.from([0, 1, 2, 3]), "application/octet-stream")
    await page.getByRole("alert").waitFor()
    await page.evaluate(`{
      const data = new DataTransfer()
      data.items.add(new File(["Dropped text."], "dropped.md", { type: "text/markdown" }))
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))
    }`)
    await page.getByRole("cell", { name: /^dropped.md/ }).waitFor()
    await press("Delete dropped.md")
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
    await page.getByRole("cell", { name: /^dropped.md/ }).waitFor({ state: "detached" })
    // a filter that is chosen during an upload is that of the list at its end
    const held = await hold("**/v1/files")
    await give("late.txt", Buffer.from("Late."))
    await page.getByLabel("Show").selectOption("Output of a batch")
    await page.getByText("No files yet.").waitFor()
    const [read] = await Promise.all([page.waitForRequest("**/v1/files?*"), held()])
    expect(new URL(read.url()).searchParams.get("purpose")).toBe("batch_output")
  })

  it("knowledge is read, and a query finds it", async () => {
    await open("Knowledge")
    await page.getByRole("cell", { name: "can be found" }).first().waitFor()
    await page.getByLabel("Query", { exact: true }).fill("How long does the warranty last?")
    await press("Search")
    const hit = page.getByRole("list", { name: "Hits, best first" }).getByRole("listitem").first()
    await hit.getByText("The warranty lasts three years.").waitFor()
    await hit.getByText("notes.txt").waitFor()
    await hit.getByText(/score 0\.\d|score 1/).waitFor()
  })

  it("a hit is shown in the text around it, and the arrow keys go from hit to hit", async () => {
    const paragraphs = Array.from({ length: 200 }, (_, n) => `Paragraph ${n} is about boats.`)
    paragraphs[100] = "The harbour opens at six in the morning."
    await give("harbour.md", Buffer.from(paragraphs.join(" It is filled with words.\n\n")))
    const row = page.getByRole("row").filter({ hasText: "harbour.md" })
    await row.getByText("can be found").waitFor()
    await page.getByLabel("Query", { exact: true }).fill("harbour opens six morning")
    await press("Search")
    const hits = page.getByRole("list", { name: "Hits, best first" }).getByRole("listitem")
    await hits.filter({ hasText: "harbour opens" }).first().getByRole("button").click()
    const dialog = page.getByRole("dialog")
    const place = async () => (await dialog.getByText(/^Hit \d/).textContent())!.match(/\d+/g)!
    const [at, all] = (await place()).map(Number) as [number, number]
    expect(all).toBeGreaterThan(1)
    await dialog.getByRole("heading", { name: "harbour.md" }).waitFor()
    const passage = dialog.getByRole("region", { name: "The hit and the text around it" })
    // the hit is in sight, below some of the text before it
    const seen =
      "((box, mark) => mark.getBoundingClientRect().top - box.getBoundingClientRect().top)(...document.querySelectorAll('.passage, .passage mark'))"
    expect(await page.evaluate(seen)).toBeGreaterThan(0)
    expect(await page.evaluate(seen)).toBeLessThan(200)
    const marked = (await passage.locator("mark").textContent())!
    expect(marked).toContain("The harbour opens at six")
    const around = (await passage.textContent())!
    expect(around.length).toBeGreaterThan(marked.length)
    // what chunks have in common is there once
    const numbers = [...around.matchAll(/Paragraph (\d+)/g)].map(([, number]) => number)
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(await violations(page)).toEqual([])
    const [there, back] = at < all ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"]
    await page.keyboard.press(there!)
    await dialog.getByText(`Hit ${at < all ? at + 1 : at - 1} of ${all}`).waitFor()
    await page.keyboard.press(back!)
    await dialog.getByText(`Hit ${at} of ${all}`).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      dialog.getByRole("button", { name: "Download harbour.md" }).click(),
    ])
    expect(download.suggestedFilename()).toBe("harbour.md")
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
  })

  it("a batch is checked before it is paid, runs, and shows its errors by line", async () => {
    await open("Batches")
    await page.getByText("No batches yet.").waitFor()
    await press("New batch")
    await give("wrong.jsonl", Buffer.from("this is no JSON"))
    await page.getByLabel("Endpoint of all lines").selectOption("/v1/embeddings")
    await press("Check, without paying")
    await page.getByText("It can't begin like this.").waitFor()
    await give("lines.jsonl", jsonl([line(1), line(2), line(3, { model: "no-such-model" })]))
    await page
      .getByLabel("File", { exact: true })
      .locator("option", { hasText: "lines.jsonl" })
      .waitFor({ state: "attached" })
    await press("Check, without paying")
    await page.getByText("3 lines, 1 of them wrong. It can begin.").waitFor()
    expect(await page.getByText("Costs at most").textContent()).toMatch(/Rp.0\.\d/)
    await press("Begin")
    await page.getByText("completed", { exact: true }).waitFor()
    await page.getByText("3 of 3 done, 1 failed").waitFor()
    expect((await saved("Download output")).trim().split("\n")).toHaveLength(2)
    await page.getByText("Errors by line").click()
    await page.getByRole("cell", { name: "line-3" }).waitFor()
    await page.getByRole("cell", { name: "model_not_found" }).first().waitFor()
  })

  it("a check is that of the chosen file, and a double click begins nothing", async () => {
    const begun: string[] = []
    page.on("request", (request) => {
      const isBatch = request.method() === "POST" && request.url().endsWith("/v1/batches")
      if (isBatch && !request.headers()["x-dry-run"]) begun.push(request.url())
    })
    await press("New batch")
    const file = page.getByLabel("File", { exact: true })
    await file.selectOption("lines.jsonl")
    await page.getByLabel("Endpoint of all lines").selectOption("/v1/embeddings")
    const held = await hold("**/v1/batches")
    await press("Check, without paying")
    await file.selectOption("wrong.jsonl")
    await Promise.all([page.waitForResponse("**/v1/batches"), held()])
    await press("Check, without paying")
    await page.getByText("It can't begin like this.").waitFor()
    await file.selectOption("lines.jsonl")
    await press("Check, without paying")
    const box = (await page.getByRole("button", { name: "Begin", exact: true }).boundingBox())!
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
    await page.mouse.down({ clickCount: 2 })
    await page.mouse.up({ clickCount: 2 })
    await file.selectOption("wrong.jsonl")
    await press("Check, without paying")
    await page.getByText("It can't begin like this.").waitFor()
    expect(begun).toEqual([])
    await press("Cancel")
  })

  it("a webhook is made, tested, sent again, given a new secret and deleted", async () => {
    await open("Webhooks")
    await page.getByText("No webhooks yet.").waitFor()
    await press("New webhook")
    await page.getByLabel("Address").fill("https://127.0.0.1/hook")
    await press("Create")
    await page.locator(".refusal").waitFor()
    await page.getByLabel("Address").fill(receiver.url)
    await loseReply("**/v1/webhooks")
    await press("Create")
    await page.getByText("The server can't be reached.").waitFor()
    await press("Create")
    const secret = page.getByLabel("Signing secret", { exact: true }).last()
    const first = await secret.inputValue()
    expect(first).toMatch(/^whsec_/)
    const focused = () => page.evaluate("document.activeElement.matches('.made h2')")
    await expect.poll(focused).toBe(true)
    // one, though it was sent twice
    const card = region(receiver.url)
    await card.getByRole("button", { name: "Send a test" }).click()
    await card.locator("summary", { hasText: "webhook.test" }).click()
    await card.getByText("thanks").waitFor()
    const before = receiver.received.length
    await card.getByRole("button", { name: "Send again" }).click()
    await expect.poll(() => receiver.received.length).toBe(before + 1)
    await card.getByRole("button", { name: "New secret" }).click()
    await loseReply("**/rotate")
    const rotate = page.getByRole("dialog").getByRole("button", { name: "New secret" })
    const [lost] = await Promise.all([page.waitForRequest("**/rotate"), rotate.click()])
    await page.getByText("The server can't be reached.").waitFor()
    const [sent] = await Promise.all([page.waitForRequest("**/rotate"), rotate.click()])
    const [key, again] = [lost, sent].map((request) => request.headers()["idempotency-key"])
    expect(key).toMatch(/^\w{32}$/)
    expect(again).toBe(key)
    await expect.poll(() => secret.inputValue()).not.toBe(first)
    await expect.poll(focused).toBe(true)
    // a test that arrives makes a disabled one active
    await page.route("**/v1/webhooks?*", async (route) => {
      const reply = await route.fetch()
      const { data, ...rest } = await reply.json()
      await route.fulfill({ json: { ...rest, data: [{ ...data[0], status: "disabled" }] } })
    })
    await open("Files")
    await open("Webhooks")
    await card.getByText("disabled").waitFor()
    await page.unroute("**/v1/webhooks?*")
    await card.getByRole("button", { name: "Send a test" }).click()
    await card.getByText("disabled").waitFor({ state: "detached" })
    await card.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
    await page.getByText("No webhooks yet.").waitFor()
  })
})
