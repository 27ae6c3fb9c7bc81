import { useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Field } from "../parts/field.js"

const most = 6

/** The first picture: the model alone. */
export const plain = { lora: "", strength: "0.6" }

const added = (looks, loras) => {
  const unused = loras.find((lora) => looks.every((look) => look.lora !== lora))
  return [...looks, { ...plain, lora: unused ?? loras[0] }]
}

/** How a picture of a comparison is called. */
export const lookName = (t, { lora, strength }) =>
  lora ? t("play.image.look", { lora, strength }) : t("play.image.plain")

const Look = ({ look, at, loras, onChange, onRemove }) => {
  const { t } = useText()
  const number = at + 1
  return html`<li class="look">
    <${Field} label=${t("play.image.lora.of", { number })} as="select" value=${look.lora} onChange=${(event) => onChange({ ...look, lora: event.target.value })}>
      <option value="">${t("play.image.plain")}</option>
      ${loras.map((lora) => html`<option key=${lora} value=${lora}>${lora}</option>`)}
    <//>
    ${look.lora && html`<${Field} label=${t("play.image.strength.of", { number })} type="number" required min="0" max="1.5" step="any" inputmode="decimal" value=${look.strength} onInput=${(event) => onChange({ ...look, strength: event.target.value })} />`}
    ${onRemove && html`<${Button} look="link" aria-label=${t("play.image.remove.of", { number })} onClick=${onRemove}>${t("play.image.remove")}<//>`}
  </li>`
}

/** The pictures that are made side by side: each without a LoRA, or with one at a strength. */
export const Looks = ({ looks, loras, onChange }) => {
  const { t } = useText()
  if (loras.length === 0) return null
  const remove = (at) => (looks.length > 1 ? () => onChange(looks.toSpliced(at, 1)) : undefined)
  return html`<fieldset>
    <legend>${t("play.image.looks")}</legend>
    <p class="hint">${t("play.image.looks.hint")}</p>
    <ul class="looks">${looks.map((look, at) => html`<${Look} key=${at} look=${look} at=${at} loras=${loras} onChange=${(next) => onChange(looks.with(at, next))} onRemove=${remove(at)} />`)}</ul>
    ${looks.length < most && html`<${Button} onClick=${() => onChange(added(looks, loras))}>${t("play.image.add")}<//>`}
  </fieldset>`
}
