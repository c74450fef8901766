/** Bounds on the work a foreign hash may ask of each sign-in; the reference's (contract/auth-core.md 13). */
const MAX_MEMORY_KIB = 1024 * 1024
const MAX_PASSES = 20
const MAX_LANES = 16

/** The three parameters come in any order: ours writes m, p, t, others m, t, p. */
const ARGON2 =
  /^\$argon2(?:id|i)\$v=19\$(?=[^$]*m=(\d{1,7})\b)(?=[^$]*t=(\d{1,2})\b)(?=[^$]*p=(\d{1,2})\b)[mtp]=\d+,[mtp]=\d+,[mtp]=\d+\$[A-Za-z0-9+/]{11,128}\$[A-Za-z0-9+/]{16,128}$/

/** Whether a password hash made elsewhere can be verified here, at a bearable price. */
export function isSupportedHash(hash: string): boolean {
  const [memory, passes, lanes] = (ARGON2.exec(hash) ?? []).slice(1).map(Number)
  if (!memory || !passes || !lanes) return false
  return memory >= 8 * lanes && memory <= MAX_MEMORY_KIB && passes <= MAX_PASSES && lanes <= MAX_LANES
}
