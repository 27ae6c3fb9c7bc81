import { Effect, Stream } from "effect"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint, type Endpoint, type Plan } from "../../core/ports/endpoint.ts"
import { type Asset, assetRoot, assetTypes } from "./assets.ts"
import { contentSecurityPolicy } from "./page.ts"

const headers = {
  "content-security-policy": contentSecurityPolicy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  // cached, but revalidated each time: a new version of the server has its own page
  "cache-control": "no-cache",
}

const planOf = ({ bytes, etag, mediaType }: Asset): Plan => ({
  bound: {},
  run: Effect.succeed({
    status: 200,
    headers: { ...headers, etag },
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
    plan: () => Effect.succeed(planOf(page)),
  })

export const makeAssetsEndpoint = (assets: ReadonlyMap<string, Asset>): Endpoint =>
  defineEndpoint({
    ...open,
    id: "dashboard.assets",
    summary: "Scripts and styles of the dashboard.",
    path: `${assetRoot}/{file}`,
    aliases: [`${assetRoot}/{folder}/{file}`],
    mediaTypes: assetTypes,
    plan: ({ params: { folder, file } }) => {
      const asset = assets.get(folder === undefined ? (file ?? "") : `${folder}/${file}`)
      return asset
        ? Effect.succeed(planOf(asset))
        : Effect.fail(apiError("not_found", "There is no such file."))
    },
  })
