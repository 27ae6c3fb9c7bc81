import { Secret, TOTP } from "otpauth"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { installedChromium, openBrowser, openPage, withoutChromium } from "./testing/chromium.ts"

describe.skipIf(!installedChromium)(
  installedChromium ? "two-factor sign-in, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 90_000 },
  () => {
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
    const password = "a long password"
    let accounts = 0

    it("is set up with an app's code, asked for at sign-in, and turned off again", async () => {
      // a second attempt has an account without a second factor, too
      const email = `ada${++accounts}@example.com`
      await fetch(`${platform.url}/dashboard/signup`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email, password }),
      })
      const { page, complaints, close } = await openPage(browser)
      const press = (name: string) => page.getByRole("button", { name, exact: true }).click()
      const fill = (label: string, text: string) =>
        page.getByLabel(label, { exact: true }).fill(text)
      const signIn = async () => {
        await page.goto(`${platform.url}/dashboard#sign-in`)
        await fill("E-mail", email)
        await fill("Password", password)
        await press("Sign in")
      }
      const heading = (name: string) => page.getByRole("heading", { level: 1, name }).waitFor()
      await signIn()
      await heading("Overview")
      await page.goto(`${platform.url}/dashboard#account`)
      const card = page.getByRole("region", { name: "Two-factor sign-in" })
      await card.getByLabel("Current password").fill(password)
      await press("Set up")
      const dialog = page.getByRole("dialog")
      await dialog.getByRole("img", { name: "QR code of the secret" }).locator("path").waitFor()
      const secret = await dialog.getByLabel("Secret", { exact: true }).inputValue()
      await dialog.getByLabel("Code", { exact: true }).fill("000000")
      await press("Turn on")
      await dialog.getByText("This code is wrong, too old, or was used.").waitFor()
      await dialog
        .getByLabel("Code", { exact: true })
        .fill(new TOTP({ secret: Secret.fromBase32(secret) }).generate())
      await press("Turn on")
      const codes = (await dialog.locator("pre").textContent())!.split("\n")
      expect(codes).toHaveLength(10)
      await press("I have kept them")
      await card.getByText("Sign-in asks for a code of your authenticator app.").waitFor()

      await page.evaluate("localStorage.clear()")
      await page.reload()
      await signIn()
      await page.getByText("or a recovery code").waitFor()
      await fill("Code", "not-a-code")
      await press("Sign in")
      await page.getByText("This code is wrong, too old, or was used.").waitFor()
      await fill("Code", codes[0]!)
      await press("Sign in")
      await heading("Overview")

      await page.goto(`${platform.url}/dashboard#account`)
      await card.getByLabel("Current password").fill(password)
      await card.getByLabel("Code", { exact: true }).fill(codes[1]!)
      await press("Turn off")
      await press("Set up")
      // a mail about the balance
      const low = page.getByRole("region", { name: "Mail at a low balance" })
      await low.getByLabel("Amount in Rp").fill("20000")
      await low.getByRole("button", { name: "Save" }).click()
      await low.getByText("You get a mail when the balance falls below it.").waitFor()
      await page.reload()
      expect(await low.getByLabel("Amount in Rp").inputValue()).toBe("20000")
      expect(complaints).toEqual([])
      await close()
    })
  },
)
