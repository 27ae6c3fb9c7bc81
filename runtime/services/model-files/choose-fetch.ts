import { EnvHttpProxyAgent, type RequestInfo, type RequestInit, fetch as undiciFetch } from "undici"
import type { Env, Fetch } from "./context.ts"

/** Node's own fetch; where a proxy is set in the environment, which that one does not see, undici's with the proxy. Both honour NODE_EXTRA_CA_CERTS. */
export const chooseFetch = (env: Env): Fetch => {
  const httpProxy = env.http_proxy ?? env.HTTP_PROXY
  const httpsProxy = env.https_proxy ?? env.HTTPS_PROXY
  if (!httpProxy && !httpsProxy) return globalThis.fetch
  const noProxy = env.no_proxy ?? env.NO_PROXY
  const dispatcher = new EnvHttpProxyAgent({
    ...(httpProxy && { httpProxy }),
    ...(httpsProxy && { httpsProxy }),
    ...(noProxy && { noProxy }),
  })
  return ((input: RequestInfo, init?: RequestInit) =>
    undiciFetch(input, { ...init, dispatcher })) as unknown as Fetch
}
