import type { Transaction } from 'kysely'
import type { NewChallenge } from '../../core/factors/challenges.store.ts'
import type { DB } from '../../db/tables.ts'

/** What a kind of factor adds to a challenge, and does in its transaction, with the user locked. */
export type ChallengeParts = Pick<NewChallenge, 'codeHash' | 'webauthn'> & {
  whenOpen?: (trx: Transaction<DB>) => Promise<void>
}
export type Open = (parts: ChallengeParts) => Promise<void>
