/** What a mail says, in one language. */
export interface Letter {
  readonly subject: string
  readonly greeting: string
  readonly paragraphs: readonly string[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Smaller, below the action. */
  readonly notes: readonly string[]
}

/** Where a mail's links lead. */
export interface Places {
  /** Of the deployment, as people know it. */
  readonly site: string
  readonly signIn: string
  readonly forgot: string
}

/** The letters of one language. */
export interface Letters {
  verify(places: Places, url: string): Letter
  /** Somebody signed up with an address that has a verified account. */
  registered(places: Places): Letter
  reset(places: Places, url: string): Letter
  /** The password was changed by a link like that. */
  changed(places: Places): Letter
}
