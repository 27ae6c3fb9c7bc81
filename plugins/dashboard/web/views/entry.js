import { html } from "../html.js"
import { Models } from "./models.js"

/** Where one comes in: a form, and beside it the state of the server. */
export const Entry = ({ title, models, children }) => html`<div class="entry">
  <section class="card narrow"><h1>${title}</h1>${children}</section>
  <${Models} models=${models} />
</div>`
