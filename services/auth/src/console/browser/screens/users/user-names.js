// Names and states of users and of their devices, as lists and pages show them.

/** @typedef {Record<string, any>} User */
/** @typedef {{ text: string, kind: 'good' | 'bad' | 'warn' | 'plain' }} State */

/** @param {User} user @returns {string} */
export const nameOf = ({ email, phone, new_email: newEmail, id }) => email || (phone && `+${phone}`) || newEmail || id

/** @param {User} user */
export const isBanned = ({ banned_until: until }) => until !== undefined && Date.parse(until) > Date.now()

/** @param {User} user @returns {State[]} */
export function statesOf(user) {
  /** @type {(State | false)[]} */
  const states = [
    user.deleted_at !== undefined && { text: 'deleted', kind: 'bad' },
    isBanned(user) && { text: 'banned', kind: 'bad' },
    user.is_anonymous && { text: 'anonymous', kind: 'plain' },
    !user.is_anonymous && !user.deleted_at && !user.confirmed_at && { text: 'unconfirmed', kind: 'warn' },
    (user.factors ?? []).some((/** @type {any} */ { status }) => status === 'verified') && {
      text: 'second factor',
      kind: 'good',
    },
  ]
  return states.filter((state) => state !== false)
}

const SYSTEMS = {
  iPhone: /iPhone/,
  iPad: /iPad/,
  Android: /Android/,
  Windows: /Windows/,
  macOS: /Mac OS X/,
  Linux: /Linux/,
}
const BROWSERS = {
  Edge: /Edg\//,
  Opera: /OPR\//,
  Firefox: /Firefox\/|FxiOS\//,
  Chrome: /Chrome\/|CriOS\//,
  Safari: /Safari\//,
}

/** A short name of a browser; others, such as applications, keep their text. @param {string | null} userAgent */
export function deviceOf(userAgent) {
  if (!userAgent) return 'Unknown device'
  const find = (/** @type {Record<string, RegExp>} */ names) =>
    Object.entries(names).find(([, pattern]) => pattern.test(userAgent))?.[0]
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)]
  return browser && system ? `${browser} on ${system}` : userAgent
}
