import { regardlessOfDeadline } from '@services/common/request-deadline'
import { hookBehind } from './hooks.ts'

/** Redeems a right code; gives its counted attempt back where a hook refuses or fails, because the code stays good. */
export async function givingBack<Result>(redeem: () => Promise<Result>, giveBack: () => Promise<void>) {
  try {
    return await redeem()
  } catch (error) {
    // The failure of the hook is that of the request.
    if (hookBehind(error)) await regardlessOfDeadline(giveBack).catch(() => {})
    throw error
  }
}
