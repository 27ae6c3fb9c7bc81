import { existsSync } from "node:fs"
import { type Browser, chromium, type Page } from "playwright-core"

const places = [
  process.env.RAKIT_TEST_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
]

/** The path of an installed browser; the tests bring none. */
export const installedChromium = places.find((path) => path && existsSync(path))

export const withoutChromium =
  "no Chromium on this machine (apt-get install chromium, or name one in RAKIT_TEST_CHROMIUM)"

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: installedChromium!,
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  })

/**
 * Opens a window and collects the browser's complaints: errors, rejections, violations of the
 * policy. 4xx replies are no complaints: tests provoke them.
 */
export const openPage = async (
  browser: Browser,
  more: NonNullable<Parameters<Browser["newContext"]>[0]> = {},
) => {
  const context = await browser.newContext({
    locale: "en-GB",
    timezoneId: "Asia/Jakarta",
    acceptDownloads: true,
    ...more,
  })
  const page: Page = await context.newPage()
  const complaints: string[] = []
  page.on("pageerror", (error) => complaints.push(String(error)))
  page.on("console", (message) => {
    if (
      ["error", "warning"].includes(message.type()) &&
      !message.text().startsWith("Failed to load resource")
    )
      complaints.push(message.text())
  })
  page.setDefaultTimeout(20_000)
  return { page, complaints, close: () => context.close() }
}
