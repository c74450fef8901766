import type { Transaction } from 'kysely'
import type { Challenge } from '../../core/factors/challenges.store.ts'
import type { GivenProof } from '../../core/freshness/require-fresh.ts'
import type { DB } from '../../db/tables.ts'

export interface Verification {
  factorId: string
  challengeId: string | undefined
  code: string | undefined
  /** Answer of a security key, not validated yet. */
  webauthn: unknown
  ip: string | null
  proof: GivenProof
  acceptLanguage: string | undefined
}

/** Uses the proof up, with the user locked; resolves to false if another request used it first. */
export type Spend = (trx: Transaction<DB>) => Promise<boolean>

/** A proof and the way to check it. */
export interface Proof {
  /** Resolves to undefined for a wrong proof. */
  check(challenge: Challenge): Promise<Spend | undefined>
  /** Runs a check, counted as an attempt if the proof could be guessed. Resolves to whether it was right. */
  counted(attempt: () => Promise<boolean>): Promise<boolean>
  /** Message for a wrong proof. */
  refusal: string
}
