import type { AmrEntry } from '../../db/tables.ts'

/** Age up to which a sign-in replaces a proof: long enough to scan a code, read a mail and return from a provider. */
const RECENT_MS = 15 * 60_000

/**
 * Whether the session has proven one of these methods lately. A refresh keeps the times of `amr`; a proof renews its
 * own.
 */
export const isRecent = (
  { now }: { now: () => Date },
  { amr }: { amr: readonly AmrEntry[] },
  counts: (method: string) => boolean,
): boolean => amr.some(({ method, timestamp }) => counts(method) && timestamp * 1000 > now().getTime() - RECENT_MS)
