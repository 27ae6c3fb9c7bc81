import { Effect, Stream } from "effect"
import { defineEndpoint } from "../../core/endpoint.ts"
import type { Asset } from "./assets.ts"

/** Only our own files run on the page, and only our own API is called. */
const headers = {
  "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
}

export const makeAssetEndpoint = (asset: Asset) =>
  defineEndpoint({
    id: asset.id,
    summary: `The dashboard: ${asset.path}`,
    method: "GET",
    path: asset.path,
    access: "public",
    body: "none",
    maxBodyBytes: 0,
    plan: () => Effect.succeed({ bound: {}, run: Effect.succeed({ status: 200, headers, mediaType: asset.mediaType, bytes: Stream.make(asset.bytes) }) }),
  })
