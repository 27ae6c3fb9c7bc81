import { Effect, Stream } from "effect"
import { apiError, defineEndpoint, type Endpoint, freePlan, type Plan } from "../../core/index.ts"
import type { ApiPage } from "./api-page.ts"
import { inlineScripts, type ServedFile, type ServedFiles, servedTypes } from "./files.ts"

/** Only this server's files run, and only this server is called. `data:`: icons of both pages' styles. */
const policyWith = (scripts: readonly string[]): string =>
  [
    "default-src 'none'",
    `script-src ${["'self'", ...scripts].join(" ")}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ")

const planOf = ({ bytes, etag, mediaType }: ServedFile, policy: string, isHashed = false): Plan =>
  freePlan(
    Effect.succeed({
      status: 200,
      headers: {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        // a name with a hash never means something else; others are revalidated each time
        "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
        etag,
      },
      mediaType,
      bytes: Stream.make(bytes),
      shared: bytes,
    }),
  )

const open = { method: "GET", access: "public", body: "none", maxBodyBytes: 0 } as const

export const makePageEndpoint = ({ page }: ApiPage): Endpoint =>
  defineEndpoint({
    ...open,
    id: "docs",
    summary: "The page of the API.",
    path: "/docs",
    mediaTypes: ["text/html"],
    plan: () => Effect.succeed(planOf(page, policyWith([]))),
  })

const noFile = () => Effect.fail(apiError("not_found", "There is no such file."))

export const makeFilesEndpoint = ({ files }: ApiPage): Endpoint =>
  defineEndpoint({
    ...open,
    id: "docs.files",
    summary: "Scripts and styles of the page of the API.",
    path: "/docs/assets/{file}",
    mediaTypes: servedTypes,
    plan: ({ params: { file = "" } }) => {
      const found = files.get(file)
      return found ? Effect.succeed(planOf(found, policyWith([]))) : noFile()
    },
  })

const guideRoot = "/docs/guide"

/** Pages have no ending in their address; a folder's page is its `index`. */
export const makeGuideEndpoint = (files: ServedFiles): Endpoint => {
  const pages = [...files].filter(([name]) => name.endsWith(".html"))
  const scripts = pages.flatMap(([, { bytes }]) =>
    inlineScripts(Buffer.from(bytes).toString("utf8")),
  )
  const policy = policyWith([...new Set(scripts)])
  return defineEndpoint({
    ...open,
    id: "docs.guide",
    summary: "The guide.",
    path: guideRoot,
    aliases: [
      `${guideRoot}/{first}`,
      `${guideRoot}/{first}/{second}`,
      `${guideRoot}/{first}/{second}/{third}`,
    ],
    mediaTypes: servedTypes,
    plan: ({ params: { first, second, third } }) => {
      if (files.size === 0)
        return Effect.fail(
          apiError(
            "not_found",
            "The guide is not built here: npm run docs:site builds it, for the next start.",
          ),
        )
      const path = [first, second, third].filter((part) => part !== undefined).join("/")
      const file = files.get(path || "index.html") ?? files.get(`${path}.html`)
      return file
        ? Effect.succeed(planOf(file, policy, /^assets\/.*\.[\w-]{8}\./.test(path)))
        : noFile()
    },
  })
}
