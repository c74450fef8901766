import type { Transaction } from 'kysely'
import type { NewChallenge } from '../../core/factors/challenges.store.ts'
import type { DB } from '../../db/tables.ts'

/** Parts of a challenge that depend on the kind of factor; `whenOpen` runs in its transaction, with the user locked. */
export type ChallengeParts = Pick<NewChallenge, 'codeHash' | 'webauthn'> & {
  whenOpen?: (trx: Transaction<DB>) => Promise<void>
}
export type Open = (parts: ChallengeParts) => Promise<void>
