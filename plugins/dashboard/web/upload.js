import { Problem } from "./api.js"

const problemOf = (request) => {
  const body = request.response
  return new Problem(
    typeof body?.error?.message === "string"
      ? { status: request.status, ...body.error, requestId: body.request_id }
      : { status: request.status, code: request.status ? "unreadable" : "unreachable" },
  )
}

/** Uploads a form and says how far it is, from 0 to 1: `fetch` can't say that. Resolves to the reply's JSON. */
export const upload = ({ path, form, key, language, onProgress }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open("POST", path)
    request.responseType = "json"
    request.setRequestHeader("authorization", `Bearer ${key}`)
    request.setRequestHeader("accept-language", language)
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0)
    request.onerror = () => reject(new Problem({}))
    request.onload = () =>
      request.status < 300 && request.response
        ? resolve(request.response)
        : reject(problemOf(request))
    request.send(form)
  })
