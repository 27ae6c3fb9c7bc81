import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import {
  installedChromium,
  openBrowser,
  withoutChromium,
} from "../../plugins/dashboard/testing/chromium.ts"
import { askDashboard } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const openai = dirname(createRequire(import.meta.url).resolve("openai"))
const folder = mkdtempSync(join(tmpdir(), "rakit-cors-"))

const document = `<script type="module">
import OpenAI from "/openai/index.mjs"
globalThis.OpenAI = OpenAI
</script>`

/** A web server of somebody else: a page with the openai client. */
const servePage = async (): Promise<{ readonly origin: string; readonly server: Server }> => {
  const server = createServer((req, res) => {
    const path = normalize(new URL(req.url ?? "/", "http://page").pathname)
    if (path === "/") return void res.writeHead(200, { "content-type": "text/html" }).end(document)
    if (!path.startsWith("/openai/") || !path.endsWith(".mjs")) return void res.writeHead(404).end()
    res
      .writeHead(200, { "content-type": "text/javascript" })
      .end(readFileSync(join(openai, path.slice("/openai/".length))))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const configWith = (origins: readonly string[]): string => {
  const file = join(folder, `${origins.length}.yaml`)
  const config = parse(
    readFileSync(join(root, "config/test.yaml"), "utf8").replace(
      "../testing/fakes/backend.ts",
      join(root, "testing/fakes/backend.ts"),
    ),
  )
  config.server.cors = { origins }
  writeFileSync(file, stringify(config))
  return file
}

describe.skipIf(!installedChromium)(
  installedChromium ? "pages of other origins, in Chromium" : `skipped: ${withoutChromium}`,
  { timeout: 60_000 },
  () => {
    let listed: Awaited<ReturnType<typeof servePage>>
    let other: Awaited<ReturnType<typeof servePage>>
    let platform: Platform
    let open: Platform
    let browser: Browser
    beforeAll(async () => {
      listed = await servePage()
      other = await servePage()
      platform = await startPlatform({ config: configWith([listed.origin]) })
      open = await startPlatform({ config: configWith(["*", listed.origin]) })
      browser = await openBrowser()
    }, 120_000)
    afterAll(async () => {
      await browser?.close()
      await platform?.close()
      await open?.close()
      for (const { server } of [listed, other]) server.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    })

    const pageOf = async ({ origin }: { readonly origin: string }): Promise<Page> => {
      const page = await browser.newPage()
      await page.goto(origin)
      await page.waitForFunction("globalThis.OpenAI")
      return page
    }

    /** Runs in the page: what the official client gets, whole and as a stream. */
    const chat = (page: Page, { url }: Platform, key: string) =>
      page.evaluate(
        async ([baseURL, apiKey]) => {
          const { OpenAI } = globalThis as unknown as typeof import("openai")
          const client = new OpenAI({
            baseURL: baseURL!,
            apiKey: apiKey!,
            dangerouslyAllowBrowser: true,
            maxRetries: 0,
          })
          const ask = {
            model: "svc-lyt",
            messages: [{ role: "user" as const, content: "one two three" }],
          }
          try {
            const { data, response } = await client.chat.completions
              .create(ask, { idempotencyKey: crypto.randomUUID() })
              .withResponse()
            let text = ""
            for await (const chunk of await client.chat.completions.create({
              ...ask,
              stream: true,
            }))
              text += chunk.choices[0]?.delta.content ?? ""
            const header = (name: string) => response.headers.get(name)
            return {
              whole: data.choices[0]?.message.content,
              text,
              exposed: [
                ...["x-request-id", "x-call-id", "x-cost-idr", "server-timing"],
                "x-ratelimit-remaining-requests",
              ].map((name) => header(name) !== null),
            }
          } catch (error) {
            const { status, code } = error as { status?: number; code?: string }
            return { status: status ?? null, code: code ?? null }
          }
        },
        [`${url}/v1`, key],
      )

    it("a page of a listed origin calls with the official client, streams, and reads the headers", async () => {
      const page = await pageOf(listed)
      const answer = await chat(page, platform, platform.credentials.api_key)
      expect(answer).toEqual({
        whole: expect.stringMatching(/\w/),
        text: expect.stringMatching(/\w/),
        exposed: [true, true, true, true, true],
      })
      expect(await chat(page, platform, "svc_live_wrong")).toEqual({
        status: 401,
        code: "authentication_error",
      })
    })

    it("a page of another origin gets nothing to read", async () => {
      const page = await pageOf(other)
      // no status: the browser stops at the preflight
      expect(await chat(page, platform, platform.credentials.api_key)).toEqual({
        status: null,
        code: null,
      })
      const models = await page.evaluate(
        (url) => fetch(url).then(String, (error: unknown) => String(error)),
        `${platform.url}/v1/models`,
      )
      expect(models).toMatch(/TypeError/)
    })

    it("no page of another origin signs in, even of a listed one", async () => {
      const page = await pageOf(listed)
      const { email, password } = platform.credentials
      const said = await page.evaluate(
        ([url, body]) =>
          fetch(url!, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: body!,
          }).then(String, (error: unknown) => String(error)),
        [`${platform.url}/dashboard/login`, JSON.stringify({ email, password })],
      )
      expect(said).toMatch(/TypeError/)
    })

    it("*: any page with a test key, and none with a live one, except where listed", async () => {
      const { email, password, api_key } = open.credentials
      const { token } = await askDashboard(open.url, "/dashboard/login", "", { email, password })
      const { key } = await askDashboard(open.url, "/dashboard/keys", token, {
        name: "page",
        test: true,
      })
      const page = await pageOf(other)
      expect(await chat(page, open, key)).toMatchObject({ whole: expect.stringMatching(/\w/) })
      expect(await chat(page, open, api_key)).toEqual({ status: 403, code: "origin_not_allowed" })
      expect(await chat(await pageOf(listed), open, api_key)).toMatchObject({
        text: expect.stringMatching(/\w/),
      })
    })
  },
)
