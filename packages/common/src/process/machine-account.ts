import { hostname, userInfo } from 'node:os'

/** Account and host of this machine, as in `ada@db-1`: the name under which a command acts. */
export const machineAccount = (): string => `${accountName()}@${hostname()}`

/** Returns the number of an account without a name, which containers may run under. */
function accountName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.())
  }
}
