// Saving a user that another administrator may change at the same time. A change is made only to the version that was
// read. Where other members have changed meanwhile, it is made all the same; the same ones are shown first.
import { ApiFailure, api } from '../../api.js'

/** @typedef {Record<string, any>} User */

/** Attempts at a user that changes all the time, as by its own sign-ins. */
const MAX_ATTEMPTS = 5

/** @param {User} user */
const versionOf = ({ updated_at: updatedAt }) => ({ 'if-match': `"${updatedAt}"` })

/**
 * Makes a function that saves changes of the user as it was read. `touched` returns the values that they replace.
 * It throws, once, where another administrator has changed one of these; called again, it writes over that.
 * @param {User} read @returns {(body: object, touched: (user: User) => Record<string, unknown>) => Promise<void>}
 */
export function saverOf(read) {
  let known = read
  return async (body, touched) => {
    for (let attempt = 1; ; attempt++) {
      try {
        await api.put(`/admin/users/${read.id}`, body, versionOf(known))
        return
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.status !== 412 || attempt === MAX_ATTEMPTS) throw error
      }
      const before = touched(known)
      known = await api.get(`/admin/users/${read.id}`)
      const now = touched(known)
      const changed = Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(before[name]))
      if (changed.length > 0) throw new Error(explained(changed, now))
    }
  }
}

/** @param {string[]} changed @param {Record<string, unknown>} now */
function explained(changed, now) {
  const values = changed.map((name) => `${name} is now ${JSON.stringify(now[name]) ?? 'absent'}`)
  return `Someone else has changed this meanwhile: ${values.join(', ')}. Save again to replace it.`
}

/**
 * Returns a member of an object's own: a name such as `constructor` is in every object.
 * @param {Record<string, unknown>} object @param {string} name
 */
export const ownMember = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined)

/**
 * Returns the changes that turn one metadata object into another; null removes a key.
 * @param {Record<string, unknown>} before @param {Record<string, unknown>} after @returns {Record<string, unknown>}
 */
export function changesOf(before, after) {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(ownMember(before, name)),
  )
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  return Object.fromEntries([...changed, ...removed.map((name) => [name, null])])
}
