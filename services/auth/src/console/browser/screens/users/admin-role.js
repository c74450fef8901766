// The rights of an administrator: a user has them by the role or by `role` in the metadata of the application.
import { confirm } from '../../kit/dialog.js'
import { session } from '../../session.js'
import { nameOf } from './user-names.js'

/** @typedef {Record<string, any>} User */

/** @param {User} user */
export const isAdministrator = ({ role, app_metadata: metadata }) =>
  [role, metadata.role].some((each) => session().admin_roles.includes(each))

const LAST = 'If no administrator is left, only the command admin create makes one again.'

/** @param {User} user */
const isOneself = ({ id }) => id === session().user.id

/** Says what the loss of an administrator means; nothing about other users. @param {User} user */
export function warningOf(user) {
  if (isOneself(user)) return `This is your own account: the console closes for you at once. ${LAST}`
  return isAdministrator(user) ? `The user is an administrator. ${LAST}` : ''
}

/**
 * Asks before a change that takes the rights of an administrator. Resolves with whether it is to be made.
 * @param {User} user @param {Partial<User>} changes
 */
export async function confirmLoss(user, changes) {
  if (!isAdministrator(user) || isAdministrator({ ...user, ...changes })) return true
  const isOwn = isOneself(user)
  return await confirm({
    title: isOwn ? 'Give up your own rights?' : `Take the rights of ${nameOf(user)}?`,
    text: isOwn
      ? `You are no administrator then: the console closes for you at once, and you cannot undo it here. ${LAST}`
      : `${nameOf(user)} is no administrator then. ${LAST}`,
    action: isOwn ? 'Give them up' : 'Take them',
    isDangerous: true,
  })
}
