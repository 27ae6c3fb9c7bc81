import { useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "./button.js"

/** A text with a copy button. Without HTTPS pages have no clipboard: then the text is selected. */
export const Copy = ({ label, text }) => {
  const { t } = useText()
  const field = useRef()
  const [said, say] = useState("")
  const copy = async () => {
    field.current.select()
    try {
      await navigator.clipboard.writeText(text)
      say(t("copy.done"))
    } catch {
      say(t("copy.byHand"))
    }
  }
  return html`<div class="copy">
    <input ref=${field} readonly value=${text} aria-label=${label} class="code" spellcheck=${false} onFocus=${(event) => event.target.select()} />
    <${Button} look="main" onClick=${copy}>${t("copy")}<//>
    <span role="status" class="quiet">${said}</span>
  </div>`
}
