import OpenAI from "openai"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { violations } from "./testing/axe.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

/** Waits until nothing moves and nothing loads, so that colours are those that stay. */
const settled = async (page: Page) => {
  await vi.waitFor(async () => expect(await page.locator(".skeleton").count()).toBe(0), 10_000)
  await page.evaluate(
    "Promise.allSettled(document.getAnimations().filter((a) => a.effect.getTiming().iterations < 9).map(({ finished }) => finished)).then(() => 0)",
  )
}

/** Heights of a phone's screen of 800 px. */
const maxScreens = 8

const publicRoutes = ["sign-in", "sign-up", "forgot"]
/** Every two of colours, language and width together. */
const looks = [
  { colorScheme: "light", language: "en", width: 360 },
  { colorScheme: "light", language: "id", width: 1280 },
  { colorScheme: "dark", language: "en", width: 1280 },
  { colorScheme: "dark", language: "id", width: 360 },
] as const

describe.skipIf(!installedChromium)(
  installedChromium ? "every page, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 240_000 },
  () => {
    let platform: Platform
    let browser: Browser
    beforeAll(async () => {
      platform = await startPlatform()
      browser = await openBrowser()
      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: platform.credentials.api_key,
      })
      const messages = [{ role: "user" as const, content: "one two three" }]
      await client.chat.completions.create({ model: "svc-lyt", messages })
      const refused = client.chat.completions.create({ model: "no-such-model", messages })
      await expect(refused).rejects.toMatchObject({ status: 400 })
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
    })

    const opened = async ({ colorScheme, language, width }: (typeof looks)[number]) => {
      const viewport = { width, height: 800 }
      const window = await openPage(browser, { colorScheme, viewport })
      const { page } = window
      await page.goto(`${platform.url}/dashboard`)
      await page.evaluate(`localStorage.setItem("rakit.language", '"${language}"')`)
      await page.reload()
      return window
    }
    const signIn = async (page: Page) => {
      await page.locator("input[type=email]").fill(platform.credentials.email)
      await page.locator("input[type=password]").fill(platform.credentials.password)
      await page.locator("form button[type=submit]").click()
      await page.locator("nav a[href='#overview']").waitFor()
    }
    const go = async (page: Page, route: string) => {
      await page.evaluate(`location.hash = "${route}"`)
      await page.locator("main h1").waitFor()
      await settled(page)
    }
    /** What is wrong with the page that is shown: for axe, or by its size. */
    const faults = async (page: Page, route: string) => {
      const [over, screens] = await page.evaluate<[number, number]>(
        "(({ scrollWidth, scrollHeight, clientWidth }) => [scrollWidth - clientWidth, scrollHeight / 800])(document.documentElement)",
      )
      return [
        ...(await violations(page)),
        ...(over > 0 ? [`${over} px wider than the screen`] : []),
        ...(screens > maxScreens ? [`${screens.toFixed(1)} screens tall`] : []),
      ].map((fault) => `#${route}: ${fault}`)
    }

    it.each(looks)("$colorScheme, $language, $width px wide", async (look) => {
      const { page, complaints, close } = await opened(look)
      const found: string[] = []
      const visit = async (route: string) => {
        await go(page, route)
        found.push(...(await faults(page, route)))
      }
      for (const route of publicRoutes) await visit(route)
      await go(page, "sign-in")
      await signIn(page)
      const links = await page
        .locator("nav a")
        .evaluateAll((all) => all.map((a) => a.getAttribute("href")))
      expect(links.length).toBeGreaterThan(5)
      for (const link of links) await visit(link!.slice(1))
      await go(page, "calls")
      await page.locator("button.took").click()
      found.push(...(await faults(page, "calls, with stages")))
      const receipt = await page.locator("a[href^='#receipt/']").first().getAttribute("href")
      await visit(receipt!.slice(1))
      await visit("receipt/unknown")
      await go(page, "usage")
      for (const measure of ["latency", "codes"]) {
        await page.locator("select:has(option[value=latency])").selectOption(measure)
        await page.locator(".canvas canvas").waitFor()
        await settled(page)
        found.push(...(await faults(page, `usage, ${measure}`)))
      }
      for (const [route, least] of [
        ["playground", 3],
        ["admin", 3],
      ] as const) {
        await go(page, route)
        const tabs = await page
          .locator(".tabs a")
          .evaluateAll((all) => all.map((a) => a.getAttribute("href")))
        expect(tabs.length).toBeGreaterThan(least)
        for (const tab of tabs) await visit(tab!.slice(1))
      }
      expect(await page.locator("html").getAttribute("lang")).toBe(look.language)
      await close()
      expect(found).toEqual([])
      expect(complaints).toEqual([])
    })
  },
)
