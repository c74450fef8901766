import type { Transaction } from 'kysely'
import type { Challenge } from '../../core/factors/challenges.store.ts'
import type { GivenProof } from '../../core/freshness/require-fresh.ts'
import type { DB } from '../../db/tables.ts'

export interface Verification {
  factorId: string
  challengeId: string | undefined
  code: string | undefined
  /** What a security key answered; its shape is checked where it is read. */
  webauthn: unknown
  ip: string | null
  proof: GivenProof
  acceptLanguage: string | undefined
}

/** Uses the proof up, with the user locked; false: somebody else was first. */
export type Spend = (trx: Transaction<DB>) => Promise<boolean>

/** How a proof of one kind is looked at. */
export interface Proof {
  /** Undefined: it is wrong. */
  check(challenge: Challenge): Promise<Spend | undefined>
  /** Runs the look at it, which resolves to whether it was right, counted where it could be a guess. */
  counted(look: () => Promise<boolean>): Promise<boolean>
  /** What the caller is told of a wrong one. */
  refusal: string
}
