import { useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "./button.js"
import { Dialog } from "./dialog.js"
import { Submit } from "./field.js"
import { Form } from "./form.js"

/** Asks before something is done that can't be undone. */
export const Ask = ({ title, what, yes, act, onClose }) => {
  const { t } = useText()
  const actions = html`<${Submit} look="danger">${yes}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${what}</p>
    <${Form} onSubmit=${act} actions=${actions} />
  <//>`
}
