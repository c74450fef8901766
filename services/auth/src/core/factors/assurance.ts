import type { Aal, AmrEntry, FactorJson } from '../../db/tables.ts'
import { SECOND_METHODS, TRUSTED_DEVICE } from '../amr/second-methods.ts'

/** Second methods without recovery codes, which replace a lost factor once. */
const FACTOR_METHODS: readonly string[] = [SECOND_METHODS.totp, SECOND_METHODS.phone, SECOND_METHODS.webauthn]
const PROOFS: readonly string[] = Object.values(SECOND_METHODS)

export const provesFactor = (method: string): boolean => FACTOR_METHODS.includes(method)
/** Whether the method is a proof of the second factor, and not a device that replaces one. */
export const isSecondProof = (method: string): boolean => PROOFS.includes(method)

export const beganWithDevice = ({ amr }: { amr: readonly AmrEntry[] }): boolean =>
  amr.some(({ method }) => method === TRUSTED_DEVICE)

/** Whether the session has a second factor that was proven, and not only a trusted device. */
export const hasProvenSecondFactor = (session: { aal: Aal; amr: readonly AmrEntry[] }): boolean =>
  session.aal !== 'aal1' && (!beganWithDevice(session) || session.amr.some(({ method }) => isSecondProof(method)))

/** Recovery codes do not count: they are deleted with the last factor that they replace. */
export const hasVerifiedFactor = ({ factors }: { factors?: FactorJson[] | null }): boolean =>
  factors?.some(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code') ?? false

/** Whether a session still needs the user's second factor. */
export const lacksFactor = (user: { factors?: FactorJson[] | null }, aal: string): boolean =>
  aal === 'aal1' && hasVerifiedFactor(user)
