import type { Aal, AmrEntry } from '../../db/tables.ts'
import type { User } from '../users/users.store.ts'

/** Whose access token a request carries. */
export interface Caller {
  user: User
  /** First audience of the token. */
  audience: string
  /** False for a token made by hand from the secret. */
  hadSession: boolean
  /** Undefined once the session has ended; the token itself stays valid until it expires. */
  session: { id: string; aal: Aal; amr: AmrEntry[] } | undefined
}

/** One whose session is live: only such a caller changes an account. */
export type LiveCaller = Caller & { session: NonNullable<Caller['session']> }
