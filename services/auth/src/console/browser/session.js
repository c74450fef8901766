// The session of the console, as the service describes it.
import { api } from './api.js'

/** @typedef {{ trusted_devices: boolean, oauth_server: boolean }} Capabilities */
/**
 * @typedef {object} Session
 * @property {{ id: string, name: string }} user
 * @property {string[]} audiences
 * @property {string[]} admin_roles Roles that make a user an administrator.
 * @property {Capabilities} capabilities
 * @property {number} idle_seconds Time without a request after which it ends.
 * @property {number} seconds_left Time until it ends in any case, as of the answer.
 */

/** @type {Session | undefined} */
let known

/** Asks the service. Throws where the browser is not signed in. */
export async function openSession() {
  known = await api.get('/console/session')
}

/** @returns {Session} */
export function session() {
  if (!known) throw new Error('not signed in')
  return known
}
