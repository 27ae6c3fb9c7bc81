import { useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { percent } from "../format.js"
import { html } from "../html.js"
import { upload } from "../upload.js"
import { Button } from "./button.js"
import { ProblemNotice } from "./notice.js"

/** Uploads files one after the other. `{ now: { name, part }, problem, send }`; `part` from 0 to 1. */
const useUpload = (purpose, onUploaded) => {
  const { v1, language } = useApp()
  const [now, show] = useState(undefined)
  const [problem, refuse] = useState(undefined)
  // another list may be shown at the end
  const newest = useRef(onUploaded)
  newest.current = onUploaded
  const send = async (files) => {
    refuse(undefined)
    try {
      for (const file of files) {
        show({ name: file.name, part: 0 })
        const form = new FormData()
        form.append("purpose", purpose)
        form.append("file", file)
        const onProgress = (part) => show({ name: file.name, part })
        const how = { path: "/v1/files", form, language: language.get(), onProgress }
        const made = await v1.withKey((key) => upload({ ...how, key }))
        newest.current(made)
      }
    } catch (error) {
      if (typeof error?.code !== "string") throw error
      refuse(error)
    } finally {
      show(undefined)
    }
  }
  return { now, problem, send }
}

/** A place to drop files, with a button that opens the browser's dialog. */
export const Drop = ({ label, hint, accept, purpose, onUploaded }) => {
  const { t, language } = useText()
  const input = useRef()
  const [isOver, setOver] = useState(false)
  const { now, problem, send } = useUpload(purpose, onUploaded)
  const take = (event) => {
    event.preventDefault()
    setOver(false)
    if (!now) send([...event.dataTransfer.files])
  }
  const over = (event) => {
    event.preventDefault()
    setOver(true)
  }
  const text = now && t("upload.part", { name: now.name, part: percent(now.part, language) })
  return html`<div class=${`drop ${isOver ? "over" : ""}`} onDragOver=${over} onDragLeave=${() => setOver(false)} onDrop=${take}>
    <input ref=${input} type="file" class="unseen" tabindex="-1" multiple accept=${accept} aria-label=${label} onChange=${(
      event,
    ) => {
      send([...event.target.files])
      event.target.value = ""
    }} />
    <${Button} look="main" busy=${now !== undefined} onClick=${() => input.current.click()}>${label}<//>
    <p class="hint">${hint}</p>
    ${now && html`<div role="status"><p>${text}</p><progress max="1" value=${now.part} aria-label=${text}></progress></div>`}
    <${ProblemNotice} problem=${problem} />
  </div>`
}
