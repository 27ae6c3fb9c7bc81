import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Browser, Page } from "playwright-core"
import PostalMime from "postal-mime"
import type { Platform } from "../../testing/platform.ts"

export const signIn = async (page: Page, { url, credentials }: Platform): Promise<void> => {
  await page.goto(`${url}/dashboard#sign-in`)
  await page.getByLabel("E-mail").fill(credentials.email)
  await page.getByLabel("Password", { exact: true }).fill(credentials.password)
  await page.getByRole("button", { name: "Sign in", exact: true }).click()
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
}

/** Waits for the link of the mail that confirms an address. */
const confirmationOf = async (platform: Platform, email: string): Promise<string> => {
  const folder = join(platform.env.RAKIT_DATA!, "outbox")
  for (let tries = 0; tries < 200; tries++) {
    for (const name of await readdir(folder).catch((): string[] => [])) {
      if (!name.endsWith(".eml")) continue
      const { to, text } = await PostalMime.parse(await readFile(join(folder, name)))
      const link = /http\S+#verify=\S+/.exec(text ?? "")?.[0]
      if (link && to?.some(({ address }) => address === email))
        return link.replace("//localhost", "//127.0.0.1")
    }
    await sleep(50)
  }
  throw new Error(`no mail to ${email} came`)
}

/** Times of a new user in a browser that never waits to read; ms from the first address typed. */
export interface SignUp {
  readonly formMs: number
  readonly overviewMs: number
  readonly confirmedMs: number
  readonly firstTextMs: number
  readonly answeredMs: number
}

/** From the dashboard's address to a streamed answer in the playground, in a fresh browser. */
export const signUpAndChat = async (
  browser: Browser,
  platform: Platform,
  email: string,
): Promise<SignUp> => {
  const context = await browser.newContext({ locale: "en-GB" })
  try {
    const page = await context.newPage()
    const startedMs = performance.now()
    const sinceMs = () => performance.now() - startedMs
    await page.goto(`${platform.url}/dashboard`)
    await page.getByRole("link", { name: "Create account" }).click()
    await page.getByLabel("E-mail").fill(email)
    const formMs = sinceMs()
    await page.getByLabel("Password", { exact: true }).fill("a long password")
    await page.getByRole("button", { name: "Create account", exact: true }).click()
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    const overviewMs = sinceMs()
    await page.goto(await confirmationOf(platform, email))
    await page.getByText("is confirmed. Your keys work now.").waitFor()
    const confirmedMs = sinceMs()
    await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click()
    // the small model of the starter ends only at its bound
    await page.locator("input[name=max_tokens]").fill("64")
    await page.getByLabel("Message", { exact: true }).fill("Why is the sky blue?")
    await page.keyboard.press("Enter")
    const answer = page.locator(".message.assistant")
    await answer.filter({ hasText: /\w{2}/ }).first().waitFor()
    const firstTextMs = sinceMs()
    await answer.getByText("tokens in").waitFor({ timeout: 120_000 })
    return { formMs, overviewMs, confirmedMs, firstTextMs, answeredMs: sinceMs() }
  } finally {
    await context.close()
  }
}
