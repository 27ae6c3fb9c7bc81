import type { MailTemplates } from "./template.ts"

export const english: MailTemplates = {
  verify: ({ site, forgot }, url) => ({
    subject: "Confirm your e-mail address",
    greeting: "Hello,",
    paragraphs: [
      `somebody, hopefully you, signed up at ${site} with this address. Please confirm that it is yours.`,
    ],
    action: { label: "Confirm address", url },
    notes: [
      "The link works once, within 48 hours; a newer one takes its place.",
      `If you signed up more than once, or don't know the account's password, choose a new one first: ${forgot}`,
      "If it was not you, do nothing: the account can't be used without this confirmation.",
    ],
  }),
  registered: ({ site, signIn, forgot }) => ({
    subject: "You already have an account",
    greeting: "Hello,",
    paragraphs: [
      `somebody, perhaps you, tried to sign up at ${site} with this address. You already have an account, and nothing about it was changed.`,
    ],
    action: { label: "Sign in", url: signIn },
    notes: [
      `If you forgot your password, choose a new one: ${forgot}`,
      "If it was not you, you need not do anything.",
    ],
  }),
  reset: ({ site }, url) => ({
    subject: "Choose a new password",
    greeting: "Hello,",
    paragraphs: [`somebody, hopefully you, asked for a new password for your account at ${site}.`],
    action: { label: "Choose a new password", url },
    notes: [
      "The link works once, within 1 hour; a newer one takes its place.",
      "If it was not you, do nothing: your password stays as it is.",
    ],
  }),
  changed: ({ site, forgot }) => ({
    subject: "Your password was changed",
    greeting: "Hello,",
    paragraphs: [
      `the password of your account at ${site} was changed, and everybody who was signed in to it was signed out.`,
    ],
    notes: [
      `If it was not you, choose a new password at once, and look through your API keys: ${forgot}`,
    ],
  }),
  email: ({ site }, url) => ({
    subject: "Confirm your new e-mail address",
    greeting: "Hello,",
    paragraphs: [
      `somebody, hopefully you, wants to use this address for an account at ${site}. Please confirm that it is yours.`,
    ],
    action: { label: "Confirm address", url },
    notes: [
      "The link works once, within 48 hours; a newer one takes its place.",
      "If it was not you, do nothing: the account keeps its address.",
    ],
  }),
  emailChanged: ({ site }, address) => ({
    subject: "Your e-mail address was changed",
    greeting: "Hello,",
    paragraphs: [
      `the address of your account at ${site} was changed to ${address}. This one can no longer be used to sign in.`,
    ],
    notes: ["If it was not you, write to the operator at once."],
  }),
  deleted: ({ site }) => ({
    subject: "Your account was deleted",
    greeting: "Hello,",
    paragraphs: [
      `your account at ${site} was deleted: its API keys are revoked, and nobody can sign in to it any more.`,
    ],
    notes: ["If it was not you, write to the operator at once."],
  }),
  lowBalance: ({ site, signIn }, { balance, threshold }) => ({
    subject: "Your balance is low",
    greeting: "Hello,",
    paragraphs: [
      `the balance of your account at ${site} is ${balance}, below the ${threshold} at which you asked for this mail. Calls that it does not cover are refused.`,
    ],
    action: { label: "Look at the account", url: signIn },
    notes: ["There is no second mail until the balance has been above it again."],
  }),
}
