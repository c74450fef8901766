// The screens of the console, in the order of the menu. A screen that is not in this list does not exist.
import { oneUser } from './screens/users/one-user.js'
import { users } from './screens/users/users.js'

/** @type {readonly import('./page.js').Screen[]} */
export const screens = [users, oneUser]
