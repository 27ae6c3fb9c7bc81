import { useText } from "../app.js"
import { moment, rupiah } from "../format.js"
import { html } from "../html.js"

/** With `signed`, credits and debits look different, and not by colour alone. */
export const Amount = ({ value, signed = false }) =>
  html`<span class=${signed ? `amount ${value < 0 ? "out" : "in"}` : "amount"}>${signed && value > 0 ? "+" : ""}${rupiah(value)}</span>`

/** Shows Unix seconds; without a value, a word for never. */
export const Moment = ({ at, never = "–" }) => {
  const { language } = useText()
  return at === null || at === undefined
    ? never
    : html`<time datetime=${new Date(at * 1000).toISOString()}>${moment(at, language)}</time>`
}
