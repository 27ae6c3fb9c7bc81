import { Effect, Stream } from "effect"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint, type Endpoint, type Plan } from "../../core/ports/endpoint.ts"
import { type Asset, assetRoot, assetTypes } from "./assets.ts"
import { contentSecurityPolicy } from "./page.ts"

const headers = {
  "content-security-policy": contentSecurityPolicy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
}
// revalidated each time: a new version of the server has its own page
const revalidated = "no-cache"
// a name has the hash of its bytes
const forever = "public, max-age=31536000, immutable"

const planOf = ({ bytes, etag, mediaType }: Asset, caching: string): Plan => ({
  bound: {},
  run: Effect.succeed({
    status: 200,
    headers: { ...headers, "cache-control": caching, etag },
    mediaType,
    bytes: Stream.make(bytes),
    shared: bytes,
  }),
})

const open = { method: "GET", access: "public", body: "none", maxBodyBytes: 0 } as const

export const makePageEndpoint = (page: Asset): Endpoint =>
  defineEndpoint({
    ...open,
    id: "dashboard",
    summary: "The dashboard: one page.",
    path: "/dashboard",
    mediaTypes: ["text/html"],
    plan: () => Effect.succeed(planOf(page, revalidated)),
  })

export const makeAssetsEndpoint = (assets: ReadonlyMap<string, Asset>): Endpoint =>
  defineEndpoint({
    ...open,
    id: "dashboard.assets",
    summary: "Scripts and styles of the dashboard.",
    path: `${assetRoot}/{file}`,
    mediaTypes: assetTypes,
    plan: ({ params }) => {
      const asset = assets.get(params.file ?? "")
      return asset
        ? Effect.succeed(planOf(asset, forever))
        : Effect.fail(apiError("not_found", "There is no such file."))
    },
  })
